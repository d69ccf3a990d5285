// SPDX-License-Identifier: MIT
/**
 * TEST(room, sentence): a cmocka test that registers itself; each file of tests is a program of its own.
 */
#ifndef PERFSCOPE_TEST_H
#define PERFSCOPE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <perfscope/error.h>
#include <stdio.h>
#include <string.h>

#define PS_MAX_TESTS 512
static struct CMUnitTest ps_tests[PS_MAX_TESTS];
static size_t ps_nr_tests;

#define TEST(room, sentence)                                                                       \
	static void test_##room##_##sentence(void **state);                                        \
	__attribute__((constructor)) static void register_##room##_##sentence(void)                \
	{                                                                                          \
		ps_tests[ps_nr_tests++] =                                                          \
			(struct CMUnitTest){ #room ": " #sentence, test_##room##_##sentence, NULL, \
					     NULL, NULL };                                         \
	}                                                                                          \
	static void test_##room##_##sentence(void **state __attribute__((unused)))

#define ASSERT_EQ(left, right) assert_int_equal(left, right)
#define ASSERT_TRUE(condition) assert_true(condition)
#define ASSERT_FALSE(condition) assert_false(condition)
#define ASSERT_STR_EQ(left, right) assert_string_equal(left, right)
#define ASSERT_NULL(pointer) assert_null(pointer)
#define ASSERT_NOT_NULL(pointer) assert_non_null(pointer)

/** End the test as skipped; the formatted reason stands in the list at the end of `make test`. */
#define SKIP(...)                                                                                  \
	do {                                                                                       \
		printf("# skip: " __VA_ARGS__);                                                    \
		putchar('\n');                                                                     \
		_skip(__FILE__, __LINE__);                                                         \
	} while (0)
// A skip without a reason does not compile.
#undef skip

/** Success; a failure shows the message. */
#define ASSERT_OK(call)                                                                            \
	do {                                                                                       \
		struct ps_error *error_ = (call);                                                  \
		if (error_)                                                                        \
			fail_msg("%s", error_->message);                                           \
	} while (0)

/** A failure of this kind whose message contains @text. */
#define ASSERT_ERROR(call, expected_kind, text)                                                    \
	do {                                                                                       \
		struct ps_error *error_ = (call);                                                  \
		assert_non_null(error_);                                                           \
		if (!strstr(error_->message, text))                                                \
			fail_msg("\"%s\" is not in \"%s\"", text, error_->message);                \
		assert_int_equal(error_->kind, expected_kind);                                     \
		ps_error_destroy(error_);                                                          \
	} while (0)

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_STDOUT);
	return _cmocka_run_group_tests("tests", ps_tests, ps_nr_tests, NULL, NULL);
}

#endif
