/*
 * The stack switch for aarch64 (AAPCS64). See fiber_switch.h for the contract.
 *
 * A suspended fiber's stack, from its saved stack pointer upwards (tools/gdb-fibers.py knows this order too):
 *	x29, x30, x19 to x28, d8 to d15, fpcr and 8 unused bytes
 *
 * Entry points start with a branch target instruction and the object says so in its property note. Pointer
 * authentication is not claimed: the saved x30 is as its caller left it.
 */
#define SAVED_BYTES 176

	.text
	.p2align 4
	.globl	fiber_switch
	.hidden	fiber_switch
	.type	fiber_switch, %function
fiber_switch:
	.cfi_startproc
	hint	#34			/* bti c */
	stp	x29, x30, [sp, #-SAVED_BYTES]!
	.cfi_adjust_cfa_offset SAVED_BYTES
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	stp	x19, x20, [sp, #16]
	.cfi_rel_offset x19, 16
	.cfi_rel_offset x20, 24
	stp	x21, x22, [sp, #32]
	.cfi_rel_offset x21, 32
	.cfi_rel_offset x22, 40
	stp	x23, x24, [sp, #48]
	.cfi_rel_offset x23, 48
	.cfi_rel_offset x24, 56
	stp	x25, x26, [sp, #64]
	.cfi_rel_offset x25, 64
	.cfi_rel_offset x26, 72
	stp	x27, x28, [sp, #80]
	.cfi_rel_offset x27, 80
	.cfi_rel_offset x28, 88
	stp	d8, d9, [sp, #96]
	stp	d10, d11, [sp, #112]
	stp	d12, d13, [sp, #128]
	stp	d14, d15, [sp, #144]
	mrs	x9, fpcr
	str	x9, [sp, #160]

	mov	x9, sp
	str	x9, [x0]
	mov	sp, x1

	ldr	x9, [sp, #160]
	msr	fpcr, x9
	ldp	d14, d15, [sp, #144]
	ldp	d12, d13, [sp, #128]
	ldp	d10, d11, [sp, #112]
	ldp	d8, d9, [sp, #96]
	ldp	x27, x28, [sp, #80]
	ldp	x25, x26, [sp, #64]
	ldp	x23, x24, [sp, #48]
	ldp	x21, x22, [sp, #32]
	ldp	x19, x20, [sp, #16]
	ldp	x29, x30, [sp], #SAVED_BYTES
	.cfi_adjust_cfa_offset -SAVED_BYTES
	.cfi_restore x29
	.cfi_restore x30
	.cfi_restore x19
	.cfi_restore x20
	.cfi_restore x21
	.cfi_restore x22
	.cfi_restore x23
	.cfi_restore x24
	.cfi_restore x25
	.cfi_restore x26
	.cfi_restore x27
	.cfi_restore x28
	ret
	.cfi_endproc
	.size	fiber_switch, . - fiber_switch

/* void *fiber_switch_prepare(void *top, void (*fn)(void *), void *arg): fn waits in x20, arg in x19. */
	.p2align 4
	.globl	fiber_switch_prepare
	.hidden	fiber_switch_prepare
	.type	fiber_switch_prepare, %function
fiber_switch_prepare:
	.cfi_startproc
	hint	#34			/* bti c */
	and	x0, x0, #-16
	sub	x0, x0, #SAVED_BYTES
	adr	x9, fiber_entry
	stp	xzr, x9, [x0]
	stp	x2, x1, [x0, #16]
	stp	xzr, xzr, [x0, #32]
	stp	xzr, xzr, [x0, #48]
	stp	xzr, xzr, [x0, #64]
	stp	xzr, xzr, [x0, #80]
	stp	xzr, xzr, [x0, #96]
	stp	xzr, xzr, [x0, #112]
	stp	xzr, xzr, [x0, #128]
	stp	xzr, xzr, [x0, #144]
	mrs	x9, fpcr
	stp	x9, xzr, [x0, #160]
	ret
	.cfi_endproc
	.size	fiber_switch_prepare, . - fiber_switch_prepare

/* The outermost frame of every fiber: its return address is undefined, so a debugger's backtrace ends here. */
	.p2align 4
	.type	fiber_entry, %function
fiber_entry:
	.cfi_startproc
	.cfi_undefined x30
	mov	x0, x19
	blr	x20
	brk	#1
	.cfi_endproc
	.size	fiber_entry, . - fiber_entry

	.section .note.GNU-stack, "", %progbits

/* GNU property: aarch64 feature 1 AND = BTI. */
	.section .note.gnu.property, "a", %note
	.p2align 3
	.word	4, 16, 5
	.asciz	"GNU"
	.word	0xc0000000, 4, 1, 0
