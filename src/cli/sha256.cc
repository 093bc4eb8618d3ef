// cli/sha256.cc
// The EVP interface of OpenSSL 3 behind cli/sha256.h.
#include "cli/sha256.h"

#include <array>
#include <filesystem>
#include <system_error>

#include "base/disk.h"

namespace plumb::cli {
namespace fs = std::filesystem;

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  CHECK(context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::Update(std::string_view bytes) {
  CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

std::string Sha256::Finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  CHECK(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    text += kHex[digest[i] >> 4];
    text += kHex[digest[i] & 15];
  }
  return text;
}

base::Result<std::string> Sha256OfFile(const std::string& path,
                                       const std::function<void(uint64_t)>& on_progress) {
  constexpr size_t kPieceBytes = 4u << 20;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  // Asked before opening, since opening a pipe would wait.
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    return base::Status(base::Code::kInvalidArgument, "'" + path + "' is not a regular file");
  }
  if (fs::exists(status) && fs::is_empty(path, error)) return Sha256().Finish();  // has no map
  ASSIGN_OR_RETURN(const auto file, base::MappedFile::Open(path));
  const std::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()),
                               file->bytes().size());
  Sha256 hash;
  for (size_t done = 0; done < bytes.size();) {
    const std::string_view piece = bytes.substr(done, kPieceBytes);
    hash.Update(piece);
    done += piece.size();
    if (on_progress) on_progress(done);
  }
  return hash.Finish();
}

}  // namespace plumb::cli
