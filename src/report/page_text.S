/* layer 3b (report): the pages of build/page.html, build/cards.html and build/tutorial.html (src/report/page.sh), as parts of the program. */
    .section .rodata
    .global report_page_text
    .global report_page_end
report_page_text:
    .incbin PAGE
report_page_end:
    .byte 0
    .global report_cards_text
    .global report_cards_end
report_cards_text:
    .incbin CARDS
report_cards_end:
    .byte 0
    .global report_tutorial_text
    .global report_tutorial_end
report_tutorial_text:
    .incbin TUTORIAL
report_tutorial_end:
    .byte 0
    .section .note.GNU-stack, "", %progbits
