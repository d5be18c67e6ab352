#include "tandem/fs/stores/internal/json_answers.h"

#include <charconv>

#include <nlohmann/json.hpp>

#include "tandem/core/error.h"

namespace tandem::fs {
namespace {

using nlohmann::json;

[[noreturn]] void nonsense(const std::string& path, const std::string& why) {
  throw DataLossError(cat(path, "; The store's answer cannot be understood: ", why));
}

// Google's 64-bit numbers are texts.
std::uint64_t number_in(const json& object, const char* name, const std::string& path) {
  const auto found = object.find(name);
  if (found == object.end()) nonsense(path, cat("it has no \"", name, "\""));
  if (found->is_number_unsigned()) return found->get<std::uint64_t>();
  if (found->is_string()) {
    const auto& text = found->get_ref<const std::string&>();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && !text.empty()) return value;
  }
  nonsense(path, cat("its \"", name, "\" is no number"));
}

const json& list_in(const json& object, const char* name, const std::string& path) {
  static const json none = json::array();
  const auto found = object.find(name);
  if (found == object.end()) return none;
  if (!found->is_array()) nonsense(path, cat("its \"", name, "\" is no list"));
  return *found;
}

std::string optional_text(const json& object, const char* name, const std::string& path) {
  return object.contains(name) ? text_in(object, name, path) : "";
}

}  // namespace

json parse_json(std::string_view text, const std::string& path) {
  constexpr int kMaxDepth = 64;
  bool too_deep = false;
  const auto check = [&](int depth, json::parse_event_t, json&) {
    too_deep = too_deep || depth > kMaxDepth;
    return !too_deep;
  };
  json value = json::parse(text.begin(), text.end(), check, false);
  if (too_deep) nonsense(path, "it is nested too deep");
  if (value.is_discarded()) nonsense(path, "it is no JSON");
  if (!value.is_object()) nonsense(path, "it is no JSON object");
  return value;
}

std::string text_in(const json& object, const char* name, const std::string& path) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) {
    nonsense(path, cat("it has no text \"", name, "\""));
  }
  return found->get<std::string>();
}

ObjectInfo parse_gcs_object(std::string_view text, const std::string& path) {
  const json object = parse_json(text, path);
  return {number_in(object, "size", path),
          object.contains("generation") ? cat(number_in(object, "generation", path)) : ""};
}

ObjectPage parse_gcs_page(std::string_view text, const std::string& path) {
  const json answer = parse_json(text, path);
  ObjectPage page;
  for (const json& item : list_in(answer, "items", path)) {
    if (!item.is_object()) nonsense(path, "an item is no object");
    page.objects.push_back({text_in(item, "name", path), number_in(item, "size", path)});
  }
  for (const json& prefix : list_in(answer, "prefixes", path)) {
    if (!prefix.is_string()) nonsense(path, "a prefix is no text");
    page.prefixes.push_back(prefix.get<std::string>());
  }
  page.next = optional_text(answer, "nextPageToken", path);
  return page;
}

ObjectPage parse_gcs_buckets(std::string_view text, const std::string& path) {
  const json answer = parse_json(text, path);
  ObjectPage page;
  for (const json& item : list_in(answer, "items", path)) {
    if (!item.is_object()) nonsense(path, "an item is no object");
    page.prefixes.push_back(text_in(item, "name", path));
  }
  page.next = optional_text(answer, "nextPageToken", path);
  return page;
}

Failure parse_gcs_error(std::string_view text) {
  Failure failure;
  try {
    const json answer = parse_json(text, "");
    const auto error = answer.find("error");
    if (error == answer.end()) return {};
    // Token services answer {"error": "invalid_grant", "error_description": …}.
    if (error->is_string()) {
      return {error->get<std::string>(), optional_text(answer, "error_description", "")};
    }
    if (!error->is_object()) return {};
    failure.message = optional_text(*error, "message", "");
    const json& all = list_in(*error, "errors", "");
    if (!all.empty() && all[0].is_object()) failure.code = optional_text(all[0], "reason", "");
  } catch (const Error&) {
    return {};  // a proxy's page, or nothing
  }
  failure.retriable =
      failure.code == "rateLimitExceeded" || failure.code == "userRateLimitExceeded";
  return failure;
}

GoogleToken parse_google_token(std::string_view text, const std::string& path) {
  const json answer = parse_json(text, path);
  GoogleToken token{text_in(answer, "access_token", path)};
  // Seconds beyond a week are nonsense that would keep a token too long.
  constexpr std::uint64_t kWeek = 7 * 24 * 3600;
  const std::uint64_t seconds = number_in(answer, "expires_in", path);
  token.seconds = static_cast<std::int64_t>(seconds < kWeek ? seconds : kWeek);
  return token;
}

}  // namespace tandem::fs
