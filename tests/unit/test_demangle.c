// SPDX-License-Identifier: MIT
#include "test.h"

#include <perfscope/bytes.h>
#include <perfscope/cleanup.h>
#include <perfscope/demangle.h>

TEST(demangle, the_path_has_no_parameters_templates_and_returns)
{
	const char *const cases[][2] = {
		{ "f(int)", "f" },
		{ "ns::box<std::pair<a, b> >::get(long) const", "ns::box::get" },
		{ "int ns::box<long>::f<int>(int)", "ns::box::f" },
		{ "std::vector<int> make<int>(int)", "make" },
		{ "(anonymous namespace)::inner(long)", "(anonymous namespace)::inner" },
		{ "a::operator()(int) const", "a::operator()" },
		{ "bool operator< <int>(a<int>, a<int>)", "operator<" },
		{ "bool operator<=<int>(a<int>, a<int>)", "operator<=" },
		{ "int operator<=><a<int> >(a<int>, a<int>)", "operator<=>" },
		{ "int operator<< <int>(a<int>, int)", "operator<<" },
		{ "a<int>::operator<<=(int)", "a::operator<<=" },
		{ "operator\"\" _km(unsigned long long)", "operator\"\" _km" },
		{ "long operator\"\" _s<(char)97>()", "operator\"\" _s" },
		{ "a operator+<int>(a, a)", "operator+" },
		{ "a<int>::operator->()", "a::operator->" },
		{ "a::operator bool() const", "a::operator bool" },
		{ "operator new[](unsigned long)", "operator new[]" },
		{ "rs::shop::Cart<T>::sum", "rs::shop::Cart::sum" },
		{ "myoperator<int>(int)", "myoperator" },
	};
	for (size_t i = 0; i < PS_ARRAY_SIZE(cases); i++) {
		_cleanup_free_ char *path = ps_demangled_path(cases[i][0]);
		ASSERT_STR_EQ(path, cases[i][1]);
	}
}
