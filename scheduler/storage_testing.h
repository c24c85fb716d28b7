/* What tests of plugins of volumes share: objects put into the scheduler's view. */
#ifndef C8S_SCHEDULER_STORAGE_TESTING_H
#define C8S_SCHEDULER_STORAGE_TESTING_H

#include "scheduler/plugin_testing.h"
#include "scheduler/storage.h"

TESTING void store(struct world *w, enum storage_kind kind, const char *quoted)
{
	static const struct type *const types[STORAGE_KINDS] = {
		[STORAGE_CLAIM] = TYPE(core_v1, PersistentVolumeClaim), [STORAGE_VOLUME] = TYPE(core_v1, PersistentVolume),
		[STORAGE_CLASS] = TYPE(storage_v1, StorageClass), [STORAGE_CSI_NODE] = TYPE(storage_v1, CSINode),
		[STORAGE_CSI_DRIVER] = TYPE(storage_v1, CSIDriver), [STORAGE_CAPACITY] = TYPE(storage_v1, CSIStorageCapacity),
		[STORAGE_ATTACHMENT] = TYPE(storage_v1, VolumeAttachment),
	};
	CLEANUP(frozen_unrefp) struct frozen *f = val_freeze(world_object(w, types[kind], quoted));
	copies_put(&w->storage->kinds[kind], f);
}

TESTING void storage_world_init(struct world *w, const struct plugin *plugin)
{
	world_init(w, plugin);
	w->storage = storage_new(NULL, NULL);
}

TESTING void storage_world_done(struct world *w)
{
	storage_free(w->storage);
	world_done(w);
}

#endif
