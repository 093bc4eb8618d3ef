// cli/bus_error.h
// What the system does when a mapped file loses the bytes that are being read (somebody cuts a
// model that is served, or its disk fails) is SIGBUS: the process is gone without a word. This has
// it say which file first. Read next: base/disk.h, MappedFile.
#pragma once

namespace plumb::cli {

// From here on, such an end comes with a line on standard error that names the file; the end itself
// stays what it was, core dump included. SIGBUS that another process sent is left alone. For the
// rest of the process.
void ExplainBusErrors();

}  // namespace plumb::cli
