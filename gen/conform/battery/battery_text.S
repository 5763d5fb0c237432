/* layer 3 (conform): the tests of gen/conform/tests in their order, the profiles of known deviations and published values as a part of the program. */
    .section .rodata
    .global conform_battery_text
conform_battery_text:
    .incbin "gen/conform/tests/seg.rdma"
    .incbin "gen/conform/tests/psn.rdma"
    .incbin "gen/conform/tests/ack.rdma"
    .incbin "gen/conform/tests/nak.rdma"
    .incbin "gen/conform/tests/rnr.rdma"
    .incbin "gen/conform/tests/rto.rdma"
    .incbin "gen/conform/tests/read.rdma"
    .incbin "gen/conform/tests/atom.rdma"
    .incbin "gen/conform/tests/mem.rdma"
    .incbin "gen/conform/tests/st.rdma"
    .incbin "gen/conform/tests/srq.rdma"
    .incbin "gen/conform/tests/ud.rdma"
    .incbin "gen/conform/tests/xrc.rdma"
    .incbin "gen/conform/tests/uc.rdma"
    .incbin "gen/conform/tests/cm.rdma"
    .incbin "gen/conform/tests/wire.rdma"
    .incbin "gen/conform/tests/sec.rdma"
    .incbin "gen/conform/tests/cc.rdma"
    .incbin "gen/conform/tests/time.rdma"
    .incbin "gen/conform/tests/time_isolation.rdma"
    .incbin "gen/conform/tests/perf.rdma"
    .byte 0
    .global known_rxe_text
known_rxe_text:
    .incbin "gen/conform/battery/known_rxe.tsv"
    .byte 0
    .global known_mlx5_text
known_mlx5_text:
    .incbin "gen/conform/battery/known_mlx5.tsv"
    .byte 0
    .global known_mlx4_text
known_mlx4_text:
    .incbin "gen/conform/battery/known_mlx4.tsv"
    .byte 0
    .global known_irdma_text
known_irdma_text:
    .incbin "gen/conform/battery/known_irdma.tsv"
    .byte 0
    .global known_bnxt_re_text
known_bnxt_re_text:
    .incbin "gen/conform/battery/known_bnxt_re.tsv"
    .byte 0
    .global known_efa_text
known_efa_text:
    .incbin "gen/conform/battery/known_efa.tsv"
    .byte 0
    .global conform_coverage_text
conform_coverage_text:
    .incbin "gen/conform/battery/coverage.tsv"
    .byte 0
    .global conform_published_text
conform_published_text:
    .incbin "gen/conform/measures/published.tsv"
    .byte 0
    .section .note.GNU-stack, "", %progbits
