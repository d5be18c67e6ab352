#include "tandem/core/error.h"
#include "tandem/data/sources/files.h"

namespace tandem::data {

bool FileElements::next_text(std::string& out) {
  Element element;
  if (!next(element)) return false;
  out = element[0].array().data<std::string>()[0];
  return true;
}

void put_string(Element& out, std::string_view text) {
  Array array(DType::kString, Shape{});
  array.data<std::string>()[0] = text;
  out.clear();
  out.emplace_back(std::move(array));
}

void throw_too_large(const std::string& path, const std::string& what, std::uint64_t place,
                     std::uint64_t held, std::uint64_t most) {
  if (held <= most) {
    throw ResourceExhaustedError(cat(path, ": no memory for ", what, " at byte ", place,
                                     ", which is larger than ", held,
                                     " bytes; max_record_bytes can make the limit smaller."));
  }
  throw ResourceExhaustedError(cat(path, ": ", what, " at byte ", place, " is larger than ", most,
                                   " bytes, which max_record_bytes allows."));
}

void check_options(const FileOptions& options) {
  fs::compression_of(options.compression_type);
  if (options.num_parallel_reads < kAutotune || options.num_parallel_reads > 1024) {
    throw InvalidArgumentError(cat("num_parallel_reads must be from 0 to 1024, or kAutotune, got ",
                                   options.num_parallel_reads, "."));
  }
}

}  // namespace tandem::data
