"""Named settings of congestion control and switches, each value with the place that it comes from.

Only data and its resolution belong here. Nothing here reads files or knows a lab: a preset is a
table of `Sourced` values under the names that a lab file uses.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = [
    "APPROXIMATE_PRESETS",
    "DCQCN_PRESETS",
    "NOTIFICATION_PRESETS",
    "SWITCH_PRESETS",
    "Sourced",
    "Value",
    "dcqcn_preset",
]

Value = bool | int | float | str


@dataclass(frozen=True, slots=True)
class Sourced:
    """One value and where it comes from."""

    value: Value
    """In the unit that the setting's name ends with."""
    source: str
    """Paper section, source file, vendor document, or "lab file"."""


@dataclass(frozen=True, slots=True)
class _PerRate:
    """A value in proportion to the line rate."""

    bps_per_25g: int
    source: str

    def at(self, line_rate_bps: int) -> Sourced:
        return Sourced(self.bps_per_25g * line_rate_bps // 25_000_000_000, self.source)


_PAPER = "DCQCN, SIGCOMM 2015"
_FLUID = "ECN or Delay, CoNEXT 2016, parameters of the DCQCN authors"
_NS3_RDMA = "ns3-rdma mix/config.txt (the DCQCN authors' simulator)"
# mlxconfig query of a ConnectX-5; NVIDIA networking-docs 'DCQCN CC Parameters'
_MLX5 = "ConnectX-5 firmware default"
_MLX5_MODEL = "public models of the ConnectX reaction point (google/isekai)"
_HPCC = "HPCC ns-3 rdma-hw.cc, cc_mode 1"
_HPCC_RUN = "HPCC ns-3 run.py, --cc dcqcn"
_IRDMA = "Linux irdma driver, module parameters dcqcn_*"
_ASSUMED = "assumed: no public source states it"

_PRESETS: Mapping[str, Mapping[str, Sourced | _PerRate]] = {
    "paper": {
        "g": Sourced(1 / 256, f"{_PAPER}, section 5"),
        "initial_alpha": Sourced(1.0, f"{_PAPER}, section 3.1"),
        "alpha_fraction_bits": Sourced(0, f"{_PAPER}, equation 1: a real number"),
        "alpha_update_period_ns": Sourced(55_000, f"{_PAPER}, section 3.1: K = 55 us"),
        "alpha_update": Sourced("on_cnp", f"{_PAPER}, equation 1"),
        "cut_uses_old_alpha": Sourced(True, f"{_PAPER}, equation 1"),
        "rate_decrease_period_ns": Sourced(0, f"{_PAPER}: a cut on every CNP"),
        "decrease_alpha_ratio": Sourced(0.5, f"{_PAPER}, equation 1: alpha / 2"),
        "min_decrease_ratio": Sourced(0.5, "never binding: alpha <= 1"),
        "rate_increase_period_ns": Sourced(55_000, f"{_PAPER}, section 5: T = 55 us"),
        "rate_increase_bytes": Sourced(10_000_000, f"{_PAPER}, section 5: B = 10 MB"),
        "fast_recovery_stages": Sourced(5, f"{_PAPER}, section 3.1: F = 5"),
        "stage_count": Sourced("before_compare", f"{_PAPER}, figure 7"),
        "additive_increase_bps": Sourced(40_000_000, f"{_PAPER}, section 5: R_AI = 40 Mb/s"),
        "hyper_increase_bps": Sourced(200_000_000, f"{_NS3_RDMA}; the paper states none"),
        "hyper_increase_multiplies": Sourced(True, f"{_PAPER}, equation 4: i R_HAI"),
        "hyper_increase_speedup": Sourced(1, f"{_PAPER}: none"),
        "hyper_increase_by_timer": Sourced(False, f"{_PAPER}: both counters lead to it"),
        "clamp_target_rate": Sourced("always", f"{_PAPER}, equation 1: R_T = R_C"),
        "high_target_divisor": Sourced(1, f"{_PAPER}: none"),
        "rate_on_first_cnp_bps": Sourced(0, f"{_PAPER}: none"),
        "min_rate_bps": Sourced(10_000_000, f"{_NS3_RDMA}; the paper states none"),
        "max_rate_bps": Sourced(0, f"{_PAPER}, section 3.1: flows start at line rate"),
        "rearms_pacer": Sourced(True, f"{_PAPER}, section 3.1: R_C is the sending rate"),
    },
    "mlx5": {
        "g": Sourced(5 / 1024, f"{_MLX5}: dce_tcp_g = 1019, g = 1 - G/1024"),
        "initial_alpha": Sourced(1023 / 1024, f"{_MLX5}: initial_alpha_value = 1023"),
        "alpha_fraction_bits": Sourced(0, "our choice: the adapter's rounding is not published"),
        "alpha_update_period_ns": Sourced(1_000, f"{_MLX5}: dce_tcp_rtt = 1 us"),
        "alpha_update": Sourced("periodic", _MLX5_MODEL),
        "cut_uses_old_alpha": Sourced(False, _MLX5_MODEL),
        "rate_decrease_period_ns": Sourced(4_000, f"{_MLX5}: rate_reduce_monitor_period = 4 us"),
        "decrease_alpha_ratio": Sourced(
            0.5, f"{_MLX5}: rpg_gd = 11, alpha R_C / 2^11 with alpha in 1/1024"
        ),
        "min_decrease_ratio": Sourced(0.5, f"{_MLX5}: rpg_min_dec_fac = 50 %"),
        "rate_increase_period_ns": Sourced(300_000, f"{_MLX5}: rpg_time_reset = 300 us"),
        "rate_increase_bytes": Sourced(
            32_767 * 64, f"{_MLX5}: rpg_byte_reset = 32767; unit of 64 B: {_MLX5_MODEL}"
        ),
        "fast_recovery_stages": Sourced(1, f"{_MLX5}: rpg_threshold = 1"),
        "stage_count": Sourced("after_compare", _MLX5_MODEL),
        "additive_increase_bps": Sourced(5_000_000, f"{_MLX5}: rpg_ai_rate = 5 Mb/s"),
        "hyper_increase_bps": Sourced(50_000_000, f"{_MLX5}: rpg_hai_rate = 50 Mb/s"),
        "hyper_increase_multiplies": Sourced(False, _MLX5_MODEL),
        "hyper_increase_speedup": Sourced(1, _MLX5_MODEL),
        "hyper_increase_by_timer": Sourced(False, _MLX5_MODEL),
        "clamp_target_rate": Sourced(
            "after_increase", f"{_MLX5}: clamp_tgt_rate = 0, clamp_tgt_rate_after_time_inc = 1"
        ),
        "high_target_divisor": Sourced(1, _MLX5_MODEL),
        "rate_on_first_cnp_bps": Sourced(0, f"{_MLX5}: rate_to_set_on_first_cnp = 0"),
        "min_rate_bps": Sourced(1_000_000, f"{_MLX5}: rpg_min_rate = 1 Mb/s"),
        "max_rate_bps": Sourced(0, f"{_MLX5}: rpg_max_rate = 0"),
        "rearms_pacer": Sourced(
            True, "assumed: the adapter's scheduler takes the rate of the moment"
        ),
    },
    "ns3-hpcc": {
        "g": Sourced(1 / 256, f"{_HPCC_RUN}: EWMA_GAIN"),
        "initial_alpha": Sourced(1.0, f"{_HPCC}: alpha = 1 on the first CNP"),
        "alpha_fraction_bits": Sourced(0, f"{_HPCC}: a real number"),
        "alpha_update_period_ns": Sourced(1_000, f"{_HPCC_RUN}: ALPHA_RESUME_INTERVAL 1 us"),
        "alpha_update": Sourced("periodic", _HPCC),
        "cut_uses_old_alpha": Sourced(False, f"{_HPCC}: the cut follows the alpha timer by 1 ns"),
        "rate_decrease_period_ns": Sourced(4_000, f"{_HPCC_RUN}: RATE_DECREASE_INTERVAL 4 us"),
        "decrease_alpha_ratio": Sourced(0.5, f"{_HPCC}: alpha / 2"),
        "min_decrease_ratio": Sourced(0.5, "never binding: alpha <= 1"),
        "rate_increase_period_ns": Sourced(300_000, f"{_HPCC_RUN}: RP_TIMER 300 us"),
        "rate_increase_bytes": Sourced(0, f"{_HPCC}: no byte counter"),
        "fast_recovery_stages": Sourced(1, f"{_HPCC_RUN}: FAST_RECOVERY_TIMES 1"),
        "stage_count": Sourced("after_compare", _HPCC),
        "additive_increase_bps": _PerRate(5_000_000, f"{_HPCC_RUN}: 5 Mb/s per 25 Gb/s"),
        "hyper_increase_bps": _PerRate(50_000_000, f"{_HPCC_RUN}: 50 Mb/s per 25 Gb/s"),
        "hyper_increase_multiplies": Sourced(False, _HPCC),
        "hyper_increase_speedup": Sourced(1, _HPCC),
        "hyper_increase_by_timer": Sourced(True, f"{_HPCC}: one counter, stage > F"),
        "clamp_target_rate": Sourced("after_increase", f"{_HPCC_RUN}: CLAMP_TARGET_RATE 0"),
        "high_target_divisor": Sourced(1, _HPCC),
        "rate_on_first_cnp_bps": Sourced(0, f"{_HPCC}: RateOnFirstCNP 1.0, the rate stays"),
        "min_rate_bps": Sourced(1_000_000_000, f"{_HPCC_RUN}: MIN_RATE 1000 Mb/s"),
        "max_rate_bps": Sourced(0, f"{_HPCC}: the line rate"),
        "rearms_pacer": Sourced(True, f"our choice; {_HPCC} keeps the time of the next packet"),
    },
    "irdma": {
        "g": Sourced(1 / 256, _ASSUMED),
        "initial_alpha": Sourced(1.0, _ASSUMED),
        "alpha_fraction_bits": Sourced(0, _ASSUMED),
        "alpha_update_period_ns": Sourced(55_000, _ASSUMED),
        "alpha_update": Sourced("on_cnp", _ASSUMED),
        "cut_uses_old_alpha": Sourced(True, _ASSUMED),
        "rate_decrease_period_ns": Sourced(50_000, f"{_IRDMA}: rreduce_mperiod 50 us"),
        "decrease_alpha_ratio": Sourced(0.5, _ASSUMED),
        "min_decrease_ratio": Sourced(0.01, f"{_IRDMA}: min_dec_factor 1 %"),
        "rate_increase_period_ns": Sourced(55_000, f"{_IRDMA}: T 0x37 us"),
        "rate_increase_bytes": Sourced(150_000, f"{_IRDMA}: B 0x249f0"),
        "fast_recovery_stages": Sourced(5, f"{_IRDMA}: F 5"),
        "stage_count": Sourced("before_compare", _ASSUMED),
        "additive_increase_bps": Sourced(
            3_276_800_000, f"{_IRDMA}: rai_factor 1 segment; as a rate: 4096 B per assumed 10 us"
        ),
        "hyper_increase_bps": Sourced(
            16_384_000_000, f"{_IRDMA}: hai_factor 5 segments; as a rate: as above"
        ),
        "hyper_increase_multiplies": Sourced(False, _ASSUMED),
        "hyper_increase_speedup": Sourced(1, _ASSUMED),
        "hyper_increase_by_timer": Sourced(False, _ASSUMED),
        "clamp_target_rate": Sourced("always", _ASSUMED),
        "high_target_divisor": Sourced(1, _ASSUMED),
        "rate_on_first_cnp_bps": Sourced(0, _ASSUMED),
        "min_rate_bps": Sourced(10_000_000, f"{_IRDMA} has 0; the model needs a positive bound"),
        "max_rate_bps": Sourced(0, _ASSUMED),
        "rearms_pacer": Sourced(True, _ASSUMED),
    },
}

DCQCN_PRESETS: tuple[str, ...] = tuple(_PRESETS)
"""Names of the reaction-point presets."""

APPROXIMATE_PRESETS: Mapping[str, str] = {
    "irdma": "the adapter's reaction point is window based; this preset approximates it by rates",
    "ns3-hpcc": "there every acknowledgement echoes the mark; here every marked packet makes a CNP",
}
"""Presets that stand for something the model can't express exactly, and what is different."""


def dcqcn_preset(name: str, line_rate_bps: int) -> dict[str, Sourced]:
    """Every reaction-point value of preset `name` for NICs of `line_rate_bps`.

    Raises `KeyError` for a name that is not in `DCQCN_PRESETS`.
    """
    return {
        key: value.at(line_rate_bps) if isinstance(value, _PerRate) else value
        for key, value in _PRESETS[name].items()
    }


NOTIFICATION_PRESETS: Mapping[str, Mapping[str, Sourced]] = {
    "paper": {
        "cnp_interval_ns": Sourced(50_000, f"{_PAPER}, section 3.1: N = 50 us"),
        "scope": Sourced("qp", f"{_PAPER}, section 3.1: per flow"),
        "mode": Sourced("immediate_and_trailing", f"{_PAPER}, figure 6"),
        "cnp_on_nak": Sourced(False, f"{_PAPER}: none"),
    },
    "mlx5": {
        "cnp_interval_ns": Sourced(4_000, f"{_MLX5}: min_time_between_cnps = 4 us"),
        "scope": Sourced("port", f"{_MLX5}: 'between sending CNPs from the port'; Lumina 2023"),
        "mode": Sourced("immediate", _MLX5_MODEL),
        "cnp_on_nak": Sourced(True, "Lumina, SIGCOMM 2023: ConnectX-5 and 6, slow restart on"),
    },
    "ns3-hpcc": {
        "cnp_interval_ns": Sourced(0, f"{_HPCC}: no interval at the receiver"),
        "scope": Sourced("qp", f"{_HPCC}: the mark is echoed per flow"),
        "mode": Sourced("immediate", f"{_HPCC}: the next acknowledgement carries it"),
        "cnp_on_nak": Sourced(False, f"{_HPCC}: none"),
    },
    "irdma": {
        "cnp_interval_ns": Sourced(50_000, "Lumina, SIGCOMM 2023: a fixed interval near 50 us"),
        "scope": Sourced("qp", "Lumina, SIGCOMM 2023"),
        "mode": Sourced("immediate", _ASSUMED),
        "cnp_on_nak": Sourced(False, "Lumina, SIGCOMM 2023"),
    },
}
"""Notification-point values under the names of `DCQCN_PRESETS`."""


_EcnOfRate = Callable[[int], Mapping[str, Sourced]]


def _fixed_ecn(kmin_bytes: int, kmax_bytes: int, pmax_ratio: float, source: str) -> _EcnOfRate:
    values = {
        "kmin_bytes": Sourced(kmin_bytes, source),
        "kmax_bytes": Sourced(kmax_bytes, source),
        "pmax_ratio": Sourced(pmax_ratio, source),
    }
    return lambda _line_rate_bps: values


def _hpcc_ecn(line_rate_bps: int) -> Mapping[str, Sourced]:
    """Thresholds in proportion to the port's rate, as Alibaba's production did."""
    source = "HPCC, SIGCOMM 2019, and its issue 21: 100 KB / 400 KB per 25 Gb/s"
    return {
        "kmin_bytes": Sourced(100_000 * line_rate_bps // 25_000_000_000, source),
        "kmax_bytes": Sourced(400_000 * line_rate_bps // 25_000_000_000, source),
        "pmax_ratio": Sourced(0.2, "HPCC ns-3 run.py: PMAX_MAP"),
    }


SWITCH_PRESETS: Mapping[str, _EcnOfRate] = {
    "simai": _fixed_ecn(
        800_000, 3_200_000, 0.2, "SimAI and astra-sim ns-3 configuration for 400 Gb/s ports"
    ),
    "hpcc": _hpcc_ecn,
    "sonic": _fixed_ecn(
        1_048_576, 2_097_152, 0.05, "SONiC qos_config.j2: WRED profile AZURE_LOSSLESS"
    ),
    "onyx": _fixed_ecn(
        150_000,
        1_500_000,
        1.0,
        "Onyx and Cumulus 'roce lossless': ECN absolute 150 / 1500 KB; probability assumed",
    ),
    "paper": _fixed_ecn(5_000, 200_000, 0.01, f"{_PAPER}, section 5 (40 Gb/s ports)"),
}
"""ECN profiles of the lossless queue: name -> function of the port's rate in bits per second."""
