// text/deepseek_token_classes.cc: a call of the Rust library, behind
// text/deepseek_token_classes.h.
#include "text/deepseek_token_classes.h"

#include "text/rust.h"

namespace plumb::text {

base::Result<std::vector<uint32_t>> DeepseekTokenClasses(const Tokenizer& tokenizer) {
  plumb_ids ids = {nullptr, 0, 0};
  RustBuffer error;
  const int32_t code = plumb_tokenizer_classes(tokenizer.rust(), &ids, error.out());
  if (code != PLUMB_OK) return RustStatus(code, error, "tokenizer");
  std::vector<uint32_t> classes(ids.data, ids.data + ids.size);
  plumb_ids_free(ids);
  return classes;
}

}  // namespace plumb::text
