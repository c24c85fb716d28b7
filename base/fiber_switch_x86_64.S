/*
 * The stack switch for x86-64 (System V ABI). See fiber_switch.h for the contract.
 *
 * A suspended fiber's stack, from its saved stack pointer upwards (tools/gdb-fibers.py knows this order too):
 *	mxcsr and x87 control word, r15, r14, r13, r12, rbx, rbp, return address
 *
 * Control-flow enforcement: every entry point starts with endbr64 and the object says so in its property note, so
 * indirect branch tracking stays possible. It does not claim to be safe for shadow stacks, as a switch would have to
 * change those too: the linker therefore leaves that mark off the program, and the C library will not turn them on.
 */
#define SAVED_BYTES 64

	.text
	.p2align 4
	.globl	fiber_switch
	.hidden	fiber_switch
	.type	fiber_switch, @function
fiber_switch:
	.cfi_startproc
	endbr64
	pushq	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbp, 0
	pushq	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset rbx, 0
	pushq	%r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r12, 0
	pushq	%r13
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r13, 0
	pushq	%r14
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r14, 0
	pushq	%r15
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset r15, 0
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	stmxcsr	(%rsp)
	fnstcw	4(%rsp)

	movq	%rsp, (%rdi)
	movq	%rsi, %rsp

	ldmxcsr	(%rsp)
	fldcw	4(%rsp)
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%r15
	.cfi_adjust_cfa_offset -8
	.cfi_restore r15
	popq	%r14
	.cfi_adjust_cfa_offset -8
	.cfi_restore r14
	popq	%r13
	.cfi_adjust_cfa_offset -8
	.cfi_restore r13
	popq	%r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore r12
	popq	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbx
	popq	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore rbp
	/*
	 * A jump here would itself be predicted better, but put the processor's stack of return addresses out of step, and
	 * then all returns of the callers are mispredicted: measured, a hand-over through a channel takes twice as long.
	 */
	ret
	.cfi_endproc
	.size	fiber_switch, . - fiber_switch

/* void *fiber_switch_prepare(void *top, void (*fn)(void *), void *arg): fn waits in r12, arg in rbx. */
	.p2align 4
	.globl	fiber_switch_prepare
	.hidden	fiber_switch_prepare
	.type	fiber_switch_prepare, @function
fiber_switch_prepare:
	.cfi_startproc
	endbr64
	/* Leave a zero above the return address; the stack is 16-byte aligned when fiber_entry makes its call. */
	leaq	-16(%rdi), %rax
	andq	$-16, %rax
	subq	$SAVED_BYTES, %rax
	xorl	%ecx, %ecx
	stmxcsr	(%rax)
	fnstcw	4(%rax)
	movq	%rcx, 8(%rax)
	movq	%rcx, 16(%rax)
	movq	%rcx, 24(%rax)
	movq	%rsi, 32(%rax)
	movq	%rdx, 40(%rax)
	movq	%rcx, 48(%rax)
	leaq	fiber_entry(%rip), %rdx
	movq	%rdx, 56(%rax)
	movq	%rcx, 64(%rax)
	ret
	.cfi_endproc
	.size	fiber_switch_prepare, . - fiber_switch_prepare

/* The outermost frame of every fiber: its return address is undefined, so a debugger's backtrace ends here. */
	.p2align 4
	.type	fiber_entry, @function
fiber_entry:
	.cfi_startproc
	.cfi_undefined rip
	endbr64
	movq	%rbx, %rdi
	call	*%r12
	ud2
	.cfi_endproc
	.size	fiber_entry, . - fiber_entry

	.section .note.GNU-stack, "", @progbits

/* GNU property: x86 feature 1 AND = IBT. */
	.section .note.gnu.property, "a", @note
	.p2align 3
	.long	4, 16, 5
	.asciz	"GNU"
	.long	0xc0000002, 4, 1, 0
