#include "kubelet/pod_view.h"

#include "base/test.h"

TEST(pod_view_note_of_nobody_is_empty)
{
	CHECK(!pod_view_note(&(struct pod_view){ 0 }, STR("c"))->ready);
}
