/* layer 3b (report): the page of build/page.html (src/report/page.sh), as a part of the program. */
    .section .rodata
    .global report_page_text
    .global report_page_end
report_page_text:
    .incbin PAGE
report_page_end:
    .byte 0
    .section .note.GNU-stack, "", %progbits
