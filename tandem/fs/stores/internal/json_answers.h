#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "tandem/core/export.h"
#include "tandem/fs/stores/internal/object_store.h"
#include "tandem/fs/stores/internal/requests.h"

namespace tandem::fs {

/// A JSON object; throws DataLossError, "PATH; …", for bytes that are none, also for one that is
/// nested deeper than a store's answers are.
nlohmann::json parse_json(std::string_view text, const std::string& path);
/// A text of a JSON object; throws DataLossError where it is not there, or no text.
std::string text_in(const nlohmann::json& object, const char* name, const std::string& path);

/// What Google Cloud Storage answers: an object's resource, a page of them, the names of buckets,
/// an error (empty where it is none). They throw DataLossError for bytes that are no such answer.
TANDEM_EXPORT ObjectInfo parse_gcs_object(std::string_view json, const std::string& path);
TANDEM_EXPORT ObjectPage parse_gcs_page(std::string_view json, const std::string& path);
TANDEM_EXPORT ObjectPage parse_gcs_buckets(std::string_view json, const std::string& path);
TANDEM_EXPORT Failure parse_gcs_error(std::string_view json);

/// An access token of Google's services and for how many seconds it is valid.
struct GoogleToken {
  std::string token = "";
  std::int64_t seconds = 0;
};
TANDEM_EXPORT GoogleToken parse_google_token(std::string_view json, const std::string& path);

}  // namespace tandem::fs
