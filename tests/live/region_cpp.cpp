// SPDX-License-Identifier: MIT
// A C++ program with regions: scopes, exceptions, threads of the standard library. Prints what each counted as JSON.
#include <perfscope/region.h>
#include <cstdio>
#include <stdexcept>
#include <sys/mman.h>
#include <thread>
#include <vector>

static void fault(int nr)
{
	char *memory = static_cast<char *>(mmap(nullptr, nr * 4096, PROT_READ | PROT_WRITE,
						MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	madvise(memory, nr * 4096, MADV_NOHUGEPAGE);
	for (int i = 0; i < nr; i++)
		static_cast<volatile char *>(memory)[i * 4096] = 1;
	munmap(memory, nr * 4096);
}

static void throws()
{
	PERFSCOPE_REGION("throws");
	fault(2);
	throw std::runtime_error("left by an exception");
}

static void scope(int nr)
{
	perfscope::region scope("scope");
	fault(nr);
}

int main()
{
	if (perfscope_region_configure("page-faults", 0)) {
		std::printf("{\"error\": \"%s\"}\n", perfscope_region_error());
		return 1;
	}
	try {
		throws(); // the first exception faults in the code that unwinds
	} catch (const std::exception &) {
	}
	perfscope_region_reset();
	for (int i = 0; i < 5; i++) {
		try {
			throws();
		} catch (const std::exception &) {
		}
	}
	std::vector<std::thread> threads;
	for (int i = 0; i < 4; i++)
		threads.emplace_back([] { scope(10); });
	for (auto &thread : threads)
		thread.join();
	const char *comma = "{";
	for (const char *name : { "throws", "scope" }) {
		struct perfscope_region_total totals;
		if (perfscope_region_totals(name, &totals))
			return 2;
		std::printf("%s\"%s\": [%d, %d, %d]", comma, name, static_cast<int>(totals.calls),
			    static_cast<int>(totals.incomplete),
			    static_cast<int>(totals.values[0].value));
		comma = ", ";
	}
	std::printf("}\n");
	return 0;
}
