/* layer 3 (conform): gen/conform/battery.rdma as a part of the program. */
    .section .rodata
    .global conform_battery_text
conform_battery_text:
    .incbin "gen/conform/battery.rdma"
    .byte 0
    .section .note.GNU-stack, "", %progbits
