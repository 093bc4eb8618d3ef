// cli/sha256.h
// SHA-256 of what passes by, and of files, over OpenSSL.
#pragma once

#include <openssl/evp.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace plumb::cli {

// A resource type. Thread: one at a time.
class Sha256 {
 public:
  Sha256();
  void Update(std::string_view bytes);
  // Lower-case hex of everything so far; the object is then used up.
  std::string Finish();

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

// `on_progress` gets the bytes hashed so far. Errors as base::MappedFile::Open; an empty file is
// fine.
base::Result<std::string> Sha256OfFile(const std::string& path,
                                       const std::function<void(uint64_t)>& on_progress = {});

}  // namespace plumb::cli
