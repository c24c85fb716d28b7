#include "base/list.h"

#include "base/test.h"

struct thing {
	int id;
	_Alignas(32) char wide[32]; /* the link stands at no special place */
	struct list link;
};

static int ids(struct list *head)
{
	int all = 0;
	LIST_EACH(struct thing, t, head, link)
		all = all * 10 + t->id;
	return all;
}

TEST(list_add_and_remove)
{
	struct list head;
	struct thing a = { .id = 1 }, b = { .id = 2 }, c = { .id = 3 };

	list_init(&head);
	CHECK(list_empty(&head));
	CHECK(!LIST_FIRST(struct thing, &head, link));
	CHECK(!list_linked(&a.link));

	list_add(&head, &b.link);
	list_add(&head, &c.link);
	list_add_front(&head, &a.link);
	CHECK_INT(ids(&head), 123);
	CHECK(LIST_FIRST(struct thing, &head, link) == &a);
	CHECK(list_linked(&b.link));

	list_remove(&b.link);
	CHECK(!list_linked(&b.link));
	list_remove(&b.link);
	CHECK_INT(ids(&head), 13);
	list_add(&head, &b.link);
	CHECK_INT(ids(&head), 132);

	struct thing zero = { 0 };
	list_remove(&zero.link); /* was never in a list */
}

TEST(list_removal_while_walking)
{
	static struct list head = LIST_INIT(head);
	struct thing t[6] = { 0 };

	for (int i = 0; i < 6; i++) {
		t[i].id = i + 1;
		list_add(&head, &t[i].link);
	}
	LIST_EACH_SAFE(struct thing, x, &head, link) {
		if (x->id % 2) {
			list_remove(&x->link);
			x->link = (struct list){ 0 }; /* as freed */
		}
	}
	CHECK_INT(ids(&head), 246);
	LIST_EACH_SAFE(struct thing, x, &head, link)
		list_remove(&x->link);
	CHECK(list_empty(&head));
}
