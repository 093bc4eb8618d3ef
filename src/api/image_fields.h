// api/image_fields.h
// Images in requests, in every dialect: what is given as bytes is read and checked, what is given
// as an address is refused, since this server fetches nothing for its callers. No model here sees
// images yet, so each that is sound is refused in the end, by its place in the request.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace plumb::api {

constexpr size_t kImageBytesMax = 5u << 20;  // of one image, decoded

// All: kInvalidArgument with `path` as field.

// Image bytes as base64; `media_type` is image/jpeg, image/png, image/gif or image/webp, and the
// bytes begin as one of that type does. Gives the bytes.
base::Result<std::string> ReadImageData(std::string_view media_type, std::string_view base64,
                                        const std::string& path);

// An address: "https://..." or "data:image/png;base64,...". Of the second kind it gives the bytes.
base::Result<std::string> ReadImageUrl(std::string_view url, const std::string& path);

// What becomes of a sound image while the served model has no vision.
base::Status NoVision(const std::string& path);

}  // namespace plumb::api
