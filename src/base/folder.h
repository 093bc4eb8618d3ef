// base/folder.h
// Names of files in their folders: listed, changed, taken away, so that each step survives a crash.
// As with base/disk.h, errors name paths and are for the operator. A disk that takes no more is
// kOverloaded with reason "disk_full", here and there.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace plumb::base {

// Gives the file another name of the same file system, in one step and in place of what has that
// name; survives a crash. What is in it must have been flushed. kNotFound, kInternal.
Status RenameFile(const std::string& from, const std::string& to);

// Ok when it is not there. kInternal: refused.
Status RemoveFile(const std::string& path);

// The folder and its parents; ok when it is there. Only its owner may look into one that is made.
// kInternal: refused, or something else has that name.
Status MakeFolder(const std::string& path);

// The names in a folder, "." and ".." left out, in order. kNotFound; kInvalidArgument: more than
// `count_max`; kInternal: not readable.
Result<std::vector<std::string>> ListFolder(const std::string& path, size_t count_max);

}  // namespace plumb::base
