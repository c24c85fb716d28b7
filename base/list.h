/*
 * list: an intrusive doubly linked list. The links live in the items, so adding and removing never allocates and an item
 * leaves its list without knowing which one it is in. An empty list's head, and an item that is in no list, point to
 * themselves. Not for use by two threads at a time.
 *
 *	struct waiter { struct list link; ... };
 *	LIST_EACH(struct waiter, w, &queue, link)
 *		wake(w);
 */
#ifndef C8S_BASE_LIST_H
#define C8S_BASE_LIST_H

#include "base/defs.h"

struct list {
	struct list *next, *prev;
};

#define LIST_INIT(name) { &(name), &(name) }

static inline void list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool list_empty(const struct list *head) { return head->next == head; }

/* Puts item, which is in no list, between two neighbours. */
static inline void list_insert(struct list *item, struct list *before, struct list *after)
{
	item->prev = before;
	item->next = after;
	before->next = item;
	after->prev = item;
}

/* Puts item, which is in no list, at the end (front). */
static inline void list_add(struct list *head, struct list *item) { list_insert(item, head->prev, head); }
static inline void list_add_front(struct list *head, struct list *item) { list_insert(item, head, head->next); }

/* Does nothing to an item that is in no list, also when it is all zero. */
static inline void list_remove(struct list *item)
{
	if (!item->next)
		return;
	item->prev->next = item->next;
	item->next->prev = item->prev;
	list_init(item);
}

/* Is item in a list? False also for one that is all zero. */
static inline bool list_linked(const struct list *item) { return item->next && item->next != item; }

/* The item around a link, NULL for the head: the end of a walk. */
static inline void *list_item(const struct list *head, struct list *at, size_t offset)
{
	return at == head ? NULL : (char *)at - offset;
}

/* The first item, and the one after an item; NULL when there is none. */
#define LIST_FIRST(type, head, member) ((type *)list_item(head, (head)->next, offsetof(type, member)))
#define LIST_AFTER(type, item, head, member) ((type *)list_item(head, (item)->member.next, offsetof(type, member)))

/* Front to back. The body must not remove var. */
#define LIST_EACH(type, var, head, member) \
	for (type *var = LIST_FIRST(type, head, member); var; var = LIST_AFTER(type, var, head, member))

/* The body may remove and free var, but no other item. */
#define LIST_EACH_SAFE(type, var, head, member)                                                             \
	for (type *var = LIST_FIRST(type, head, member),                                                    \
		  *var##_after = var ? LIST_AFTER(type, var, head, member) : NULL;                          \
	     var; var = var##_after, var##_after = var ? LIST_AFTER(type, var, head, member) : NULL)

#endif
