//! Sizes, offsets and numbers against the header of the library.

use super::*;
use std::io::Write;
use std::mem::{offset_of, size_of};
use std::process::{Command, Stdio};

/// Structure and field as the header calls it, and the offset here; no field is the whole size.
fn layout() -> Vec<(&'static str, &'static str, usize)> {
    macro_rules! rows {
        ($($name:literal $type:ident { $($theirs:literal: $ours:tt),* $(,)? } $($size:ident)?;)*) => {
            vec![$(
                $(($name, $theirs, rows!(@offset $type $ours)),)*
                $(($name, "", { let _ = stringify!($size); size_of::<$type>() }),)?
            )*]
        };
        (@offset $type:ident ($outer:ident . $inner:ident)) => {
            offset_of!($type, $outer.$inner)
        };
        (@offset $type:ident $field:ident) => { offset_of!($type, $field) };
    }
    rows! {
        "ibv_context" Context {
            "device": device, "ops": operations, "cmd_fd": command_descriptor,
            "async_fd": event_descriptor, "ops.poll_cq": (operations.poll_cq),
            "ops.req_notify_cq": (operations.req_notify_cq),
            "ops.post_send": (operations.post_send), "ops.post_recv": (operations.post_recv),
        };
        "ibv_context_ops" Operations {} whole;
        "ibv_comp_channel" CompletionChannel { "fd": descriptor };
        "ibv_mr" MemoryRegion {
            "addr": address, "length": length, "lkey": local_key, "rkey": remote_key,
        } whole;
        "ibv_qp" QueuePairHandle { "qp_num": number };
        "ibv_device_attr" DeviceAttributes {
            "max_qp": max_qp, "max_qp_wr": max_qp_wr, "max_cqe": max_cqe, "phys_port_cnt": ports,
        } whole;
        "ibv_port_attr" PortAttributes {
            "state": state, "active_mtu": active_mtu, "max_msg_sz": max_message_bytes,
            "link_layer": link_layer,
        } whole;
        "ibv_global_route" GlobalRoute {
            "dgid": destination_gid, "flow_label": flow_label, "sgid_index": source_gid_index,
            "hop_limit": hop_limit, "traffic_class": traffic_class,
        } whole;
        "ibv_ah_attr" AddressVector { "is_global": is_global, "port_num": port } whole;
        "ibv_qp_cap" Capacity { "max_send_sge": send_elements } whole;
        "ibv_qp_init_attr" InitialAttributes {
            "send_cq": send_queue, "recv_cq": receive_queue, "cap": capacity, "qp_type": kind,
            "sq_sig_all": signals_all,
        } whole;
        "ibv_qp_attr" QueuePairAttributes {
            "qp_state": state, "path_mtu": path_mtu, "rq_psn": receive_psn, "sq_psn": send_psn,
            "dest_qp_num": destination_qp, "qp_access_flags": access, "ah_attr": path,
            "pkey_index": pkey_index, "max_rd_atomic": max_reads,
            "max_dest_rd_atomic": max_answered_reads, "min_rnr_timer": not_ready_timer,
            "port_num": port, "timeout": timeout, "retry_cnt": retries,
            "rnr_retry": not_ready_retries,
        } whole;
        "ibv_sge" Element { "addr": address, "length": length, "lkey": local_key } whole;
        "ibv_send_wr" SendRequest {
            "wr_id": id, "next": next, "sg_list": elements, "num_sge": element_count,
            "opcode": opcode, "send_flags": flags, "imm_data": immediate,
            "wr.rdma.remote_addr": remote_address, "wr.rdma.rkey": remote_key,
        } whole;
        "ibv_recv_wr" ReceiveRequest {
            "next": next, "sg_list": elements, "num_sge": element_count,
        } whole;
        "ibv_wc" WorkCompletion {
            "wr_id": id, "status": status, "opcode": opcode, "byte_len": length,
            "imm_data": immediate, "qp_num": qp, "wc_flags": flags,
        } whole;
    }
}

/// Constants as the header calls them, and their values here.
fn constants() -> Vec<(&'static str, i64)> {
    vec![
        ("IBV_QPT_RC", RELIABLE_CONNECTION.into()),
        ("IBV_PORT_ACTIVE", PORT_ACTIVE.into()),
        ("IBV_QPS_INIT", state::INIT.into()),
        ("IBV_QPS_RTR", state::READY_TO_RECEIVE.into()),
        ("IBV_QPS_RTS", state::READY_TO_SEND.into()),
        ("IBV_QPS_ERR", state::ERROR.into()),
        ("IBV_QP_STATE", mask::STATE.into()),
        ("IBV_QP_ACCESS_FLAGS", mask::ACCESS.into()),
        ("IBV_QP_PKEY_INDEX", mask::PKEY_INDEX.into()),
        ("IBV_QP_PORT", mask::PORT.into()),
        ("IBV_QP_AV", mask::PATH.into()),
        ("IBV_QP_PATH_MTU", mask::PATH_MTU.into()),
        ("IBV_QP_TIMEOUT", mask::TIMEOUT.into()),
        ("IBV_QP_RETRY_CNT", mask::RETRIES.into()),
        ("IBV_QP_RNR_RETRY", mask::NOT_READY_RETRIES.into()),
        ("IBV_QP_RQ_PSN", mask::RECEIVE_PSN.into()),
        ("IBV_QP_MAX_QP_RD_ATOMIC", mask::MAX_READS.into()),
        ("IBV_QP_MIN_RNR_TIMER", mask::NOT_READY_TIMER.into()),
        ("IBV_QP_SQ_PSN", mask::SEND_PSN.into()),
        ("IBV_QP_MAX_DEST_RD_ATOMIC", mask::MAX_ANSWERED_READS.into()),
        ("IBV_QP_DEST_QPN", mask::DESTINATION_QP.into()),
        ("IBV_ACCESS_LOCAL_WRITE", access::LOCAL_WRITE.into()),
        ("IBV_ACCESS_REMOTE_WRITE", access::REMOTE_WRITE.into()),
        ("IBV_WR_RDMA_WRITE", opcode::WRITE.into()),
        ("IBV_WR_RDMA_WRITE_WITH_IMM", opcode::WRITE_WITH_IMMEDIATE.into()),
        ("IBV_SEND_SIGNALED", SIGNALED.into()),
        ("IBV_WC_SUCCESS", status::SUCCESS.into()),
        ("IBV_WC_WR_FLUSH_ERR", status::FLUSHED.into()),
        ("IBV_WC_REM_INV_REQ_ERR", status::REMOTE_INVALID_REQUEST.into()),
        ("IBV_WC_REM_ACCESS_ERR", status::REMOTE_ACCESS.into()),
        ("IBV_WC_REM_OP_ERR", status::REMOTE_OPERATION.into()),
        ("IBV_WC_RETRY_EXC_ERR", status::RETRIES_EXCEEDED.into()),
        ("IBV_WC_RNR_RETRY_EXC_ERR", status::NOT_READY_RETRIES_EXCEEDED.into()),
        ("IBV_WC_GENERAL_ERR", status::GENERAL_ERROR.into()),
        ("IBV_MTU_4096", mtu_code(4096).expect("a path MTU").into()),
    ]
}

/// A program that fails to compile where the header differs.
fn assertions() -> String {
    let of_layout = layout().into_iter().map(|(name, field, ours)| {
        let theirs = match field {
            "" => format!("sizeof(struct {name})"),
            _ => format!("offsetof(struct {name}, {field})"),
        };
        format!("_Static_assert({theirs} == {ours}, \"{name}.{field}\");\n")
    });
    let of_constants = constants()
        .into_iter()
        .map(|(name, ours)| format!("_Static_assert((long long){name} == {ours}, \"{name}\");\n"));
    let head = "#include <stddef.h>\n#include <infiniband/verbs.h>\n".to_owned();
    head + &of_layout.chain(of_constants).collect::<String>()
}

/// What the C compiler says of a program; nothing if it is right.
fn compiles(program: &str) -> std::io::Result<String> {
    let mut compiler = Command::new("cc")
        .args(["-fsyntax-only", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    compiler.stdin.take().expect("it is piped").write_all(program.as_bytes())?;
    let done = compiler.wait_with_output()?;
    let message = String::from_utf8_lossy(&done.stderr).into_owned();
    Ok(if done.status.success() { String::new() } else { message })
}

#[test]
fn structures_are_those_of_the_installed_header() {
    if !compiles("#include <infiniband/verbs.h>\n").is_ok_and(|message| message.is_empty()) {
        eprintln!("skipped: needs a C compiler and libibverbs-dev (make system-packages)");
        return;
    }
    let message = compiles(&assertions()).expect("the compiler runs");
    assert!(message.is_empty(), "{message}");
}

#[test]
fn path_mtus_have_codes() {
    assert_eq!([256, 512, 1024, 2048, 4096].map(mtu_code), [1, 2, 3, 4, 5].map(Some));
    assert_eq!(mtu_code(1500), None);
}
