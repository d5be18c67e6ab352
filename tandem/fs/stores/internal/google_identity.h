#pragma once

#include <ctime>
#include <string>

#include "tandem/core/thread_annotations.h"
#include "tandem/fs/stores.h"
#include "tandem/fs/stores/internal/object_store.h"
#include "tandem/fs/stores/internal/requests.h"

namespace tandem::fs {

/// Access tokens of Google's services: of a service account's key or of a user's own login
/// (GOOGLE_APPLICATION_CREDENTIALS, else the file that `gcloud auth application-default login`
/// writes), or of the machine (its metadata server). Thread-safe.
class GoogleIdentity {
 public:
  explicit GoogleIdentity(const StoreOptions& options);

  /// A token that is valid for some minutes at least. Throws UnauthenticatedError that names where
  /// credentials were sought.
  std::string token(const CancellationPtr& cancellation);
  /// After an answer that it is not valid.
  void forget();

 private:
  std::string find(const CancellationPtr& cancellation) TANDEM_REQUIRES(mutex_);
  void of_key(const std::string& json, const std::string& file, const CancellationPtr& cancellation)
      TANDEM_REQUIRES(mutex_);
  void take(const std::string& answer, const std::string& from) TANDEM_REQUIRES(mutex_);

  Requests requests_;  // to services of the network
  Requests nearby_;    // to the metadata server
  Mutex mutex_;
  std::string token_ TANDEM_GUARDED_BY(mutex_);
  std::time_t expires_ TANDEM_GUARDED_BY(mutex_) = 0;
};

}  // namespace tandem::fs
