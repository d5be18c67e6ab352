#pragma once

#include <string>
#include <string_view>

#include "tandem/core/error.h"
#include "tandem/fs/stores/internal/aws_identity.h"
#include "tandem/fs/stores/internal/content_range.h"
#include "tandem/fs/stores/internal/environment.h"
#include "tandem/fs/stores/internal/json_answers.h"
#include "tandem/fs/stores/internal/s3_answers.h"

namespace tandem::fuzz {

/// What a store answers in XML or JSON, a header, and a file of settings: whatever the bytes, a
/// value or an Error comes of it.
inline void store_answers(std::string_view bytes) {
  const auto attempt = [](auto parse) {
    try {
      parse();
    } catch (const Error&) {
    }
  };
  attempt([&] { fs::parse_object_page(bytes, "input"); });
  attempt([&] { fs::parse_buckets(bytes, "input"); });
  attempt([&] { fs::parse_upload_id(bytes, "input"); });
  attempt([&] { fs::parse_copy_etag(bytes, "input"); });
  attempt([&] { fs::parse_sts_credentials(bytes, "input"); });
  fs::parse_s3_error(bytes);
  attempt([&] { fs::parse_gcs_object(bytes, "input"); });
  attempt([&] { fs::parse_gcs_page(bytes, "input"); });
  attempt([&] { fs::parse_gcs_buckets(bytes, "input"); });
  attempt([&] { fs::parse_google_token(bytes, "input"); });
  attempt([&] { fs::parse_metadata_credentials(bytes, "input"); });
  fs::parse_gcs_error(bytes);
  attempt([&] { fs::parse_content_range(bytes, "input"); });
  fs::parse_sections(bytes);
  fs::parse_time(bytes);
}

}  // namespace tandem::fuzz
