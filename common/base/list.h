/* list.h - an intrusive, circular, doubly linked list. The head is a node of its own. */
#ifndef RMEMFS_COMMON_BASE_LIST_H
#define RMEMFS_COMMON_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/util.h"

struct list {
	struct list *next, *prev;
};

#define list_entry(node, type, member) container_of(node, type, member)
#define list_for_each(pos, head) \
	for (struct list *pos = (head)->next; pos != (head); pos = pos->next)
/* The body may unlink pos. */
#define list_for_each_safe(pos, head)                                                 \
	for (struct list *pos = (head)->next, *pos##_next = pos->next; pos != (head); \
		pos = pos##_next, pos##_next = pos->next)

static inline void list_init(struct list *head)
{
	head->next = head->prev = head;
}

static inline bool list_empty(const struct list *head)
{
	return head->next == head;
}

static inline void list_add_tail(struct list *head, struct list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

static inline void list_add_head(struct list *head, struct list *node)
{
	list_add_tail(head->next, node);
}

static inline unsigned list_count(const struct list *head)
{
	unsigned n = 0;

	for (const struct list *node = head->next; node != head; node = node->next)
		n++;
	return n;
}

/* Leaves the node a list of its own, so that removing twice is harmless. */
static inline void list_del(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

static inline struct list *list_pop(struct list *head)
{
	struct list *node = head->next;

	if (node == head)
		return NULL;
	list_del(node);
	return node;
}

/* Moves all of from to the end of head. */
static inline void list_splice_tail(struct list *head, struct list *from)
{
	if (list_empty(from))
		return;
	from->next->prev = head->prev;
	head->prev->next = from->next;
	from->prev->next = head;
	head->prev = from->prev;
	list_init(from);
}

#endif
