/* Values and keys, the same for both engines. */
#include "base/arena.h"
#include "base/mem.h"
#include "store/store.h"

struct store_value *store_value_room(size_t n)
{
	struct store_value *v = mem_alloc(sizeof *v + n);
	*v = (struct store_value){ .refs = 1, .n = n };
	return v;
}

struct store_value *store_value_new(str bytes)
{
	struct store_value *v = store_value_room(bytes.n);
	if (bytes.n)
		memcpy(v->bytes, bytes.p, bytes.n);
	return v;
}

struct store_value *store_value_ref(struct store_value *v)
{
	v->refs++;
	return v;
}

void store_value_unref(struct store_value *v)
{
	if (!v || --v->refs > 0)
		return;
	if (v->object)
		v->object_unref(v->object);
	free(v);
}

str store_prefix_end(struct arena *a, str prefix)
{
	char *end = arena_alloc(a, prefix.n, 1);
	memcpy(end, prefix.p, prefix.n);
	for (size_t n = prefix.n; n > 0; n--) {
		if ((unsigned char)end[n - 1] < 0xff) {
			end[n - 1]++;
			return str_span(end, n);
		}
	}
	return STR("\0"); /* no key is beyond: as in etcd, "from this key on" */
}
