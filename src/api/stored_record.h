// api/stored_record.h
// What the stores on disk share: small JSON records, one a file, that are read back with the
// distrust of any other input, and errors of the disk as a client may hear them. Read next:
// api/file_store.h, api/batch_store.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/json.h"
#include "api/json_fields.h"
#include "base/hash.h"
#include "base/result.h"

namespace plumb::api {

constexpr uint64_t kRecordBytesMax = 1u << 20;

// An error of base/disk.h without the server's paths for clients: kOverloaded with reason
// "disk_full" stays what it is, in words of ours; all else becomes kInternal, whose message only
// the log has.
base::Status StorageError(const base::Status& status);

// `prefix` and 24 hexadecimal digits that nobody can guess. Thread: any.
std::string NewStoredId(std::string_view prefix);
// Whether the text has that form: what is no such id is no name of a file of ours either.
bool IsStoredId(std::string_view text, std::string_view prefix);

std::string HexOf(const base::Hash256& hash);

// A record's members. Absent ones read as "" and, where the range begins at 0 or below, as 0, since
// null is absent here too. Errors: kInvalidArgument with the member's name. A value type.
class StoredRecord {
 public:
  static base::Result<StoredRecord> Parse(std::string_view text);

  base::Result<std::string> Text(std::string_view name) const;
  base::Result<int64_t> Integer(std::string_view name, IntegerRange range) const;
  // 64 hexadecimal digits; must be there.
  base::Result<base::Hash256> Hash(std::string_view name) const;
  const JsonValue* Find(std::string_view name) const { return root_.Find(name); }

 private:
  JsonValue root_;
};

}  // namespace plumb::api
