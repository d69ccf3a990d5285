// SPDX-License-Identifier: MIT
#include "engine.h"

#include <dlfcn.h>
#include <perfscope/region.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Not there in a static program, and before glibc 2.34 without -ldl.
#pragma weak dladdr
#pragma weak dlsym

__attribute__((visibility("default"))) int perfscope_region_is_active;

__thread struct thread *engine_thread;
struct setup *_Atomic engine_setup;
pthread_mutex_t engine_lock = PTHREAD_MUTEX_INITIALIZER;

static uint32_t mark_of_all = 1;
uint32_t *engine_mark = &mark_of_all;

// Under engine_lock.
static struct thread *threads;
static struct ps_region_table *_Atomic attached;

static pthread_key_t thread_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
	pthread_mutex_lock(&engine_lock);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&engine_lock);
}

/** The child counts for itself: nothing that it inherited is its own, its parent's counters least of all. */
static void after_fork_in_child(void)
{
	while (threads)
		thread_destroy(threads, true);
	engine_thread = NULL;
	pthread_setspecific(thread_key, NULL);
	struct setup *setup = atomic_load(&engine_setup);
	if (setup)
		setup->number = setup_next_number(); // parts of paused passes are the parent's
	for (size_t i = 0; setup && i < setup->nr_sinks; i++)
		ps_region_table_forked(setup->sinks[i].table);
	*engine_mark = 1;
	pthread_mutex_unlock(&engine_lock);
}

/** In a child that no handler told of: do what that would have done. */
static void notice_fork(void)
{
	if (PS_LIKELY(__atomic_exchange_n(engine_mark, 1, __ATOMIC_ACQ_REL)))
		return;
	if (pthread_mutex_trylock(&engine_lock)) {
		// Another thread of the parent was at work on them.
		threads = NULL;
		pthread_mutex_init(&engine_lock, NULL);
		pthread_mutex_lock(&engine_lock);
	}
	after_fork_in_child();
}

static void end_thread(void *argument)
{
	notice_fork();
	if (!engine_thread)
		return; // what it had is its parent's
	pthread_mutex_lock(&engine_lock);
	thread_destroy(argument, false);
	pthread_mutex_unlock(&engine_lock);
	engine_thread = NULL;
}

/** A word that the kernel makes 0 in each child that has memory of its own (Linux 4.14); before, one that stays. */
static void make_mark(void)
{
#ifdef MADV_WIPEONFORK
	size_t size = sysconf(_SC_PAGESIZE);
	uint32_t *mark =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mark == MAP_FAILED)
		return;
	if (madvise(mark, size, MADV_WIPEONFORK)) {
		munmap(mark, size);
		return;
	}
	*mark = 1;
	engine_mark = mark;
#endif
}

/** A plugin that has this library stays loaded, also after dlclose: threads that end call end_thread. */
static void stay_loaded(void)
{
	Dl_info info;
	if (!dladdr || !dlsym || !dladdr(&once, &info) || !info.dli_fname)
		return;
	// By its name, or the linker warns each static program of it.
	__typeof__(&dlopen) open = dlsym(RTLD_DEFAULT, "dlopen");
	if (open)
		open(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

static void start_engine(void)
{
	stay_loaded();
	make_mark();
	pthread_key_create(&thread_key, end_thread);
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/** Takes over @setup. */
static void install(struct setup *setup)
{
	pthread_once(&once, start_engine);
	notice_fork();
	pthread_mutex_lock(&engine_lock);
	struct setup *old = atomic_exchange(&engine_setup, setup);
	setup_unref(old);
	attached = setup->sinks[SINK_ATTACHED].table;
	pthread_mutex_unlock(&engine_lock);
	__atomic_store_n(&perfscope_region_is_active, 1, __ATOMIC_RELEASE);
}

struct ps_error *ps_regions_configure(const struct ps_counter *counters, size_t nr,
				      unsigned int group_flags, bool is_cost_subtracted)
{
	_cleanup_setup_ struct setup *setup = NULL;
	struct ps_error *error = setup_new(counters, nr, group_flags, attached, &setup);
	if (error)
		return error;
	setup->is_cost_subtracted = is_cost_subtracted;
	_cleanup_counter_group_ struct ps_counter_group *group = NULL;
	// Beside perfscope's events, only those of this process are held to PS_GROUP_STRICT.
	unsigned int strict = setup->nr_sinks == 1 ? group_flags & PS_GROUP_STRICT : 0;
	error = ps_counter_group_open(setup->counters, setup->nr_counters,
				      setup->group_flags | strict, &group);
	if (!error)
		error = setup_refused_error(setup, group, group_flags & PS_GROUP_STRICT);
	if (error)
		return error;
	setup_tell_group(setup, group);
	install(take_ptr(setup));
	return NULL;
}

struct ps_error *ps_regions_attach(struct ps_region_table *table)
{
	const struct ps_region_table *source = table;
	unsigned int flags = ps_region_table_group_flags(table);
	struct setup *now = atomic_load(&engine_setup);
	if (now) {
		source = now->sinks[SINK_OWN].table;
		flags = now->group_flags;
	}
	size_t nr;
	const struct ps_counter *counters = ps_region_table_counters(source, &nr);
	struct setup *setup;
	struct ps_error *error = setup_new(counters, nr, flags, table, &setup);
	if (error)
		return error;
	setup->is_cost_subtracted = now && now->is_cost_subtracted;
	install(setup);
	return NULL;
}

bool ps_regions_attach_environment(void)
{
	const char *name = secure_getenv(PS_REGION_TABLE_VARIABLE);
	if (attached || !name || !*name)
		return attached;
	struct ps_region_table *table = NULL;
	struct ps_error *error = ps_region_table_open(name, &table);
	if (!error) {
		error = ps_regions_attach(table);
		if (error)
			ps_region_table_destroy(table);
	}
	ps_error_destroy(error);
	return attached;
}

bool ps_regions_are_of_run(void)
{
	return attached && table_is_owned(attached);
}

bool ps_regions_are_active(void)
{
	return __atomic_load_n(&perfscope_region_is_active, __ATOMIC_RELAXED);
}

/** What @error says behind the name of a counter, which a refusal of all begins with. */
static const char *reason_of(const struct ps_error *error, const struct ps_counter *counter)
{
	size_t length = strlen(counter->name);
	bool is_named = !strncmp(error->message, counter->name, length) &&
			!strncmp(error->message + length, ": ", 2);
	return error->message + (is_named ? length + 2 : 0);
}

/** Open what @thread counts. What is refused is told to the tables, and invalid in the sums. */
static void open_group(struct thread *thread)
{
	const struct setup *setup = thread->setup;
	if (!setup->nr_counters)
		return;
	struct ps_error *error = ps_counter_group_open(setup->counters, setup->nr_counters,
						       setup->group_flags, &thread->group);
	if (!error)
		setup_tell_group(setup, thread->group);
	for (size_t s = 0; error && s < setup->nr_sinks; s++) {
		for (size_t i = 0; i < setup->sinks[s].nr; i++)
			ps_region_table_refuse(setup->sinks[s].table, i,
					       reason_of(error, setup->counters));
	}
	ps_error_destroy(error);
}

static struct thread *thread_new(void)
{
	struct thread *thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	pthread_mutex_lock(&engine_lock);
	thread->setup = atomic_load(&engine_setup);
	thread->setup->nr_refs++;
	thread->next = threads;
	thread->link = &threads;
	if (threads)
		threads->link = &thread->next;
	threads = thread;
	pthread_mutex_unlock(&engine_lock);
	return thread;
}

struct thread *thread_renew(void)
{
	notice_fork();
	if (engine_thread)
		end_thread(engine_thread);
	struct thread *thread = thread_new();
	pthread_setspecific(thread_key, thread);
	if (!thread)
		return NULL;
	open_group(thread);
	engine_thread = thread;
	return thread;
}

struct setup *setup_get(void)
{
	notice_fork();
	pthread_mutex_lock(&engine_lock);
	struct setup *setup = atomic_load(&engine_setup);
	if (setup)
		setup->nr_refs++;
	pthread_mutex_unlock(&engine_lock);
	return setup;
}

void setup_put(struct setup *setup)
{
	pthread_mutex_lock(&engine_lock);
	setup_unref(setup);
	pthread_mutex_unlock(&engine_lock);
}
