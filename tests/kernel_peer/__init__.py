"""A Linux kernel RDMA peer (rdma_rxe) in a virtual machine, for interoperability tests."""
