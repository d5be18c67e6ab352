#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "tandem/core/export.h"
#include "tandem/fs/file_system.h"

namespace tandem::fs {

/// How a store is reached, and how its requests are made. What is left empty comes from the
/// environment and the files that the store's own tools read (docs/file-systems.md).
struct StoreOptions {
  std::string endpoint;     ///< "http://localhost:9000"; S3: AWS_ENDPOINT_URL, gs:
                            ///< STORAGE_EMULATOR_HOST, else the public service
  std::string region;       ///< S3
  std::string profile;      ///< S3: of ~/.aws/credentials and ~/.aws/config
  bool path_style = false;  ///< S3: the bucket in the path, not the host name; always with an
                            ///< endpoint of one's own unless AWS_S3_ADDRESSING_STYLE=virtual
  bool anonymous = false;   ///< requests are not signed: public buckets

  std::size_t part_bytes = std::size_t{8} << 20;  ///< of an upload and a download; min. 5 MiB
  std::size_t read_ahead_bytes = std::size_t{32} << 20;  ///< for each file that is read in order
  std::size_t memory_bytes = std::size_t{256} << 20;     ///< of all files together
  int connections = 8;                                   ///< transfers at a time

  int attempts = 8;                              ///< of a request before its error is thrown
  std::chrono::milliseconds first_backoff{100};  ///< doubled after each, with jitter
  std::chrono::milliseconds max_backoff{10'000};
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds stall_timeout{20'000};  ///< without a byte: the transfer is repeated
  std::chrono::milliseconds request_timeout{0};     ///< of a request with its repeats; 0: none
};

/// A store of scheme "http", "https", "s3" or "gs" with settings of its own, to be registered:
///
///     td::io::register_file_system("minio", [] {
///       return td::io::make_store("s3", {.endpoint = "http://localhost:9000"});
///     });
///     auto records = td::data::TFRecordDataset("minio://bucket/train.tfrecord");
///
/// Throws UnimplementedError where libtandem_stores.so is not installed, and InvalidArgumentError
/// for options out of range.
TANDEM_EXPORT std::unique_ptr<FileSystem> make_store(std::string_view scheme,
                                                     const StoreOptions& options = {});

}  // namespace tandem::fs
