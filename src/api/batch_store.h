// api/batch_store.h
// The records of batches in a folder of their own, <id>.json each, replaced in one step whenever
// one gets on; beside it, while it runs, its journal (api/batch_journal.h). Each caller sees its
// own batches and nobody else's. Full: a caller's oldest batch that has ended is forgotten first,
// or, for one that has none, that of whoever has most.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/batch_record.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/result.h"
#include "telemetry/log.h"

namespace plumb::api {

struct BatchStoreLimits {
  size_t caller_batches_max = 1000;
  size_t batches_max = 10'000;
};

// A resource type. Thread: one at a time.
class BatchStore {
 public:
  // As FileStore::Open.
  static base::Result<std::unique_ptr<BatchStore>> Open(std::string folder,
                                                        const BatchStoreLimits& limits,
                                                        telemetry::Logger& logger);

  // Id, sequence and the ids of its files are filled in. kQuotaExceeded: too many that have not
  // ended; kOverloaded: the disk (StorageError) or all callers together.
  base::Result<const Batch*> Add(Batch batch);
  // Replaces the record of the same id; on an error the old one stays, here and on the disk.
  base::Status Put(const Batch& batch);
  // Counts as they are now, to be shown: not written, since the journal has them.
  void ShowCounts(const Batch& batch);

  // Null: it never was, is forgotten, or is another caller's. Valid until the next Add.
  const Batch* Find(const base::Hash256& caller, const std::string& id) const;
  // A caller's, oldest first.
  std::vector<const Batch*> List(const base::Hash256& caller) const;
  // Everybody's that have not ended, oldest first.
  std::vector<Batch> Unfinished() const;

  std::string JournalPath(const std::string& id) const;

 private:
  using Shelf = std::map<uint64_t, Batch>;  // one caller's, by sequence

  BatchStore(std::string folder, const BatchStoreLimits& limits, telemetry::Logger& logger)
      : folder_(std::move(folder)), limits_(limits), logger_(logger) {}
  std::string Path(const std::string& id, std::string_view kind) const;
  base::Status Load();
  base::Status LoadRecord(const std::string& id);
  void Keep(Batch batch);
  static const Batch* OldestEnded(const Shelf& shelf);  // null: none has
  base::Status Forget(const Batch& batch);
  base::Status MakeRoom(const base::Hash256& caller);
  Batch* FindKept(const base::Hash256& caller, const std::string& id);

  const std::string folder_;
  const BatchStoreLimits limits_;
  telemetry::Logger& logger_;
  std::map<base::Hash256, Shelf> shelves_;
  std::map<std::string, uint64_t> sequences_;  // by id
  uint64_t next_sequence_ = 1;
};

}  // namespace plumb::api
