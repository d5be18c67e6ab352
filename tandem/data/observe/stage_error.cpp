#include "tandem/data/observe/stage_error.h"

namespace tandem::data {

void throw_write_error(const char* stage, std::int64_t element, const std::string& path,
                       const char* other) {
  const std::exception_ptr error = std::current_exception();
  const char* help = "See that it can be written";
  try {
    std::rethrow_exception(error);
  } catch (const ResourceExhaustedError&) {
    help = "Make room there";
  } catch (...) {
  }
  std::rethrow_exception(
      with_line(error, cat("in ", stage, ", element ", element, ", which it writes to ", path, ". ",
                           help, ", or give it ", other, "; nothing of it is left")));
}

}  // namespace tandem::data
