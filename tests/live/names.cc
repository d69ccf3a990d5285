// SPDX-License-Identifier: MIT
/** names [N]: calls through functions whose names C++ mangles, down to a system call. */
#include "getppid.h"

#include <cstdlib>

#define APART __attribute__((noipa))

namespace
{
APART long inner(long n)
{
	long result;
	GETPPID(result);
	return result + n;
}
} // namespace

namespace space
{
template <typename T> struct box {
	APART long get(T n) const
	{
		auto add = [](T m) APART { return inner(m) + 1; };
		return add(n) * 3;
	}
	APART long operator+(int n) const
	{
		return get(n) - 7;
	}
};

APART long overloaded(int n)
{
	return (box<long>() + n) * 5;
}

APART long overloaded(const char *text)
{
	return overloaded(text[0]) + 1;
}
} // namespace space

int main(int argc, char **argv)
{
	long sum = 0;
	for (long i = argc > 1 ? std::atol(argv[1]) : 1; i > 0; i--)
		sum += space::overloaded("x");
	return sum == 42;
}
