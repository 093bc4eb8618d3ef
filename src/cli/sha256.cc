// cli/sha256.cc: the EVP interface of OpenSSL 3 behind cli/sha256.h.
#include "cli/sha256.h"

#include <array>
#include <fstream>
#include <vector>

namespace plumb::cli {

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
  std::ifstream file(path, std::ios::binary);
  if (!file) return base::NotFound("cannot open '" + path + "'");
  std::vector<char> buffer(1u << 20);
  Sha256 hash;
  uint64_t done = 0;
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const auto got = static_cast<size_t>(file.gcount());
    hash.Update({buffer.data(), got});
    done += got;
    if (on_progress) on_progress(done);
  }
  if (file.bad()) return base::Internal("cannot read '" + path + "'");
  return hash.Finish();
}

}  // namespace plumb::cli
