/*
 * A classic-BPF machine, as the kernel runs seccomp programs: loads of whole words, jumps, masks,
 * answers.
 */
#pragma once

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "jail/filter.h"

#ifdef __x86_64__
#define BPF_NATIVE AUDIT_ARCH_X86_64
#else
#define BPF_NATIVE AUDIT_ARCH_AARCH64
#endif

#ifdef __SANITIZE_ADDRESS__
#define BPF_SANITIZED 1
#else
#define BPF_SANITIZED 0
#endif

static inline uint32_t bpf_answer(
	const struct filter *filter, uint32_t arch, uint32_t nr, const uint64_t args[6])
{
	struct seccomp_data d = { .nr = (int)nr, .arch = arch };
	uint32_t a = 0;
	memcpy(d.args, args, sizeof(d.args));
	for (unsigned pc = 0; pc < filter->len; pc++) {
		const struct sock_filter *i = &filter->code[pc];
		int hit;
		switch (i->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&a, (char *)&d + i->k, 4);
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			continue;
		case BPF_RET | BPF_K:
			return i->k;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			continue;
		case BPF_JMP | BPF_JEQ | BPF_K:
			hit = a == i->k;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			hit = a > i->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			hit = a >= i->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			hit = (a & i->k) != 0;
			break;
		default:
			printf("# unknown instruction %x\n", i->code);
			return 0xdead;
		}
		pc += hit ? i->jt : i->jf;
	}
	return 0xdead;
}
