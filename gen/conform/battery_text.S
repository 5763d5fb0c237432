/* layer 3 (conform): gen/conform/battery.rdma, the profiles of known deviations and published values as a part of the program. */
    .section .rodata
    .global conform_battery_text
conform_battery_text:
    .incbin "gen/conform/battery.rdma"
    .byte 0
    .global known_rxe_text
known_rxe_text:
    .incbin "gen/conform/known_rxe.tsv"
    .byte 0
    .global conform_coverage_text
conform_coverage_text:
    .incbin "gen/conform/coverage.tsv"
    .byte 0
    .global conform_published_text
conform_published_text:
    .incbin "gen/conform/published.tsv"
    .byte 0
    .section .note.GNU-stack, "", %progbits
