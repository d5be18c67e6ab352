#pragma once

#include <string>

#include "tandem/core/thread_annotations.h"
#include "tandem/fs/stores.h"
#include "tandem/fs/stores/internal/aws_signature.h"
#include "tandem/fs/stores/internal/environment.h"
#include "tandem/fs/stores/internal/object_store.h"
#include "tandem/fs/stores/internal/requests.h"

namespace tandem::fs {

/// Where S3 is and whose requests these are: options, AWS_* variables, ~/.aws/config and
/// ~/.aws/credentials, in this order, by the names that Amazon's own tools use. Thread-safe.
class AwsIdentity {
 public:
  explicit AwsIdentity(const StoreOptions& options);

  const std::string& region() const { return region_; }
  /// "http://host:port"; empty: Amazon's own.
  const std::string& endpoint() const { return endpoint_; }
  bool path_style() const { return path_style_; }

  /// Valid for some minutes at least: from the variables AWS_ACCESS_KEY_ID, …; a web identity
  /// (AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN); the profile in the files; the container's service
  /// (AWS_CONTAINER_CREDENTIALS_…_URI); the machine's (IMDSv2). Throws UnauthenticatedError that
  /// names these where there are none.
  AwsCredentials credentials(const CancellationPtr& cancellation);
  /// After an answer that says they have expired: the next `credentials` asks again.
  void forget();

 private:
  std::string setting(const std::string& name) const;
  AwsCredentials find(const CancellationPtr& cancellation);
  AwsCredentials from_web_identity(const std::string& token_file, const std::string& role,
                                   const CancellationPtr& cancellation);
  AwsCredentials from_container(const CancellationPtr& cancellation);
  AwsCredentials from_machine(const CancellationPtr& cancellation);

  const StoreOptions options_;
  std::string profile_;
  std::map<std::string, std::string> settings_;  // of the profile, those of both files
  std::string region_, endpoint_;
  bool path_style_ = false;
  Requests requests_;  // to services of the network
  Requests nearby_;    // to services of the machine, which answer at once or are not there
  Mutex mutex_;
  AwsCredentials known_ TANDEM_GUARDED_BY(mutex_);
};

/// What the services of machines and containers answer in JSON; throws DataLossError for other
/// bytes.
TANDEM_EXPORT AwsCredentials parse_metadata_credentials(std::string_view json,
                                                        const std::string& path);

}  // namespace tandem::fs
