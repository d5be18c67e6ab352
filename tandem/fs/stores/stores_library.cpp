#include "tandem/fs/internal/stores_library.h"

#include <cstdlib>
#include <memory>
#include <string>

#include "tandem/core/error.h"
#include "tandem/core/export.h"
#include "tandem/fs/internal/stores_build_id.h"
#include "tandem/fs/stores/internal/environment.h"
#include "tandem/fs/stores/internal/gcs_store.h"
#include "tandem/fs/stores/internal/http_file_system.h"
#include "tandem/fs/stores/internal/object_file_system.h"
#include "tandem/fs/stores/internal/s3_store.h"

namespace tandem::fs {
namespace {

void check(const StoreOptions& options) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw InvalidArgumentError(cat("StoreOptions: ", what));
  };
  require(options.part_bytes >= std::size_t{5} << 20 && options.part_bytes <= std::size_t{1} << 30,
          "part_bytes must be from 5 MiB, the smallest part that stores take, to 1 GiB.");
  require(options.connections >= 1 && options.connections <= 256,
          "connections must be from 1 to 256.");
  require(options.attempts >= 1, "attempts must be at least 1.");
  for (const auto time : {options.first_backoff, options.max_backoff, options.connect_timeout,
                          options.stall_timeout, options.request_timeout}) {
    require(time.count() >= 0, "times must not be negative.");
  }
}

std::unique_ptr<FileSystem> make(std::string_view scheme, StoreOptions options,
                                 IoScope::Source current) {
  check(options);
  if (scheme == "s3" && environment("TANDEM_S3_ANONYMOUS") == "1") options.anonymous = true;
  if (scheme == "gs" && environment("TANDEM_GS_ANONYMOUS") == "1") options.anonymous = true;
  auto context = std::make_shared<StoreContext>(options, current);
  if (scheme == "http" || scheme == "https") return std::make_unique<HttpFileSystem>(context);
  if (scheme == "s3") {
    return std::make_unique<ObjectFileSystem>(std::make_shared<S3Store>(options), context);
  }
  if (scheme == "gs") {
    return std::make_unique<ObjectFileSystem>(std::make_shared<GcsStore>(options), context);
  }
  throw InvalidArgumentError(
      cat("There is no store of scheme '", scheme, "'; there are http, https, s3 and gs."));
}

}  // namespace
}  // namespace tandem::fs

extern "C" {

TANDEM_EXPORT const char* tandem_stores_build_id() { return tandem::fs::kStoresBuildId; }

TANDEM_EXPORT tandem::fs::FileSystem* tandem_stores_make(std::string_view scheme,
                                                         const tandem::fs::StoreOptions& options,
                                                         tandem::fs::IoScope::Source current) {
  return tandem::fs::make(scheme, options, current).release();
}

}  // extern "C"
