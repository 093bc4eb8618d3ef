// api/image_fields.cc
// See image_fields.h.
#include "api/image_fields.h"

#include <fmt/format.h>

#include "base/base64.h"

namespace plumb::api {

using base::InvalidArgument;
using base::Result;
using base::Status;

namespace {

constexpr size_t kBase64BytesMax = (kImageBytesMax + 2) / 3 * 4;

// How the bytes of a type begin; a WebP has four bytes of size in between.
struct ImageType {
  std::string_view name;
  std::string_view begin;
  std::string_view after_size = {};
};
constexpr ImageType kTypes[] = {{"image/jpeg", "\xFF\xD8\xFF"},
                                {"image/png", "\x89PNG\r\n\x1A\n"},
                                {"image/gif", "GIF8"},
                                {"image/webp", "RIFF", "WEBP"}};

bool Begins(const std::string& bytes, const ImageType& type) {
  if (!bytes.starts_with(type.begin)) return false;
  return bytes.size() >= 8 && bytes.compare(8, type.after_size.size(), type.after_size) == 0;
}

}  // namespace

Result<std::string> ReadImageData(std::string_view media_type, std::string_view base64,
                                  const std::string& path) {
  const ImageType* type = nullptr;
  for (const ImageType& known : kTypes)
    if (known.name == media_type) type = &known;
  if (type == nullptr) {
    return InvalidArgument(path,
                           "an image is of type image/jpeg, image/png, image/gif or image/webp");
  }
  if (base64.size() > kBase64BytesMax) {
    return InvalidArgument(path, fmt::format("an image has at most {} bytes", kImageBytesMax));
  }
  auto bytes = base::DecodeBase64(base64);
  if (!bytes) return InvalidArgument(path, "the data of this image is not base64");
  if (!Begins(*bytes, *type))
    return InvalidArgument(path, fmt::format("this image is not of type {}", type->name));
  return *std::move(bytes);
}

Result<std::string> ReadImageUrl(std::string_view url, const std::string& path) {
  constexpr std::string_view kData = "data:";
  constexpr std::string_view kBase64 = ";base64,";
  if (url.starts_with("https://") || url.starts_with("http://")) {
    return InvalidArgument(path,
                           "this server fetches no images: send it as base64 (a data URL) instead");
  }
  if (!url.starts_with(kData))
    return InvalidArgument(path, "an image's URL begins with \"data:\" or \"https://\"");
  url.remove_prefix(kData.size());
  const size_t comma = url.find(kBase64);
  if (comma == std::string_view::npos || comma > 64)
    return InvalidArgument(path, "a data URL is data:image/png;base64,... (or another type)");
  return ReadImageData(url.substr(0, comma), url.substr(comma + kBase64.size()), path);
}

Status NoVision(const std::string& path) {
  return InvalidArgument(path, "this model takes no images");
}

}  // namespace plumb::api
