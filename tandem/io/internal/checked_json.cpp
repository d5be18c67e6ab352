#include "tandem/io/internal/checked_json.h"

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tandem/core/error.h"
#include "tandem/placement/internal/json_reason.h"

namespace tandem::io {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxDepth = 200;

// Builds the value while the text is read. The library's own builder looks for each key among all
// that the object has so far, which takes quadratic time where an object has very many.
class Builder final : public Json::json_sax_t {
 public:
  explicit Builder(const std::string& name) : name_(name) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(Json::number_integer_t value) override { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) override { return add(value); }
  bool number_float(Json::number_float_t value, const std::string& /*text*/) override {
    return add(value);
  }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(Json::binary_t& value) override { return add(std::move(value)); }

  bool start_object(std::size_t /*size*/) override { return open(Json::value_t::object); }
  bool key(std::string& value) override {
    if (!open_.back().keys.insert(value).second)
      throw DataLossError(cat(name_, " is damaged: the key '", value, "' is twice in one object."));
    open_.back().key = std::move(value);
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*size*/) override { return open(Json::value_t::array); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) override {
    throw DataLossError(cat(name_, " is no JSON: ", json_reason(error)));
  }

 private:
  struct Open {
    Json value;
    std::string key;                       // of the value that comes next
    std::unordered_set<std::string> keys;  // so far
  };

  bool open(Json::value_t type) {
    if (open_.size() == kMaxDepth)
      throw DataLossError(cat(name_, " is damaged: its values are nested too deep."));
    open_.push_back({.value = Json(type)});
    return true;
  }

  bool close() {
    Json value = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(value));
  }

  bool add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return true;
    }
    Open& in = open_.back();
    if (in.value.is_array()) {
      in.value.get_ref<Json::array_t&>().push_back(std::move(value));
    } else {
      // `key` has looked for it already; the object's own functions would look again.
      auto& members = in.value.get_ref<Json::object_t&>();
      static_cast<Json::object_t::Container&>(members).emplace_back(std::move(in.key),
                                                                    std::move(value));
    }
    return true;
  }

  const std::string& name_;
  Json root_;
  std::vector<Open> open_;  // the arrays and objects around, outermost first
};

}  // namespace

Json parse_checked_json(std::string_view text, const std::string& name) {
  Builder builder(name);
  try {
    Json::sax_parse(text, &builder);
  } catch (const Json::exception& error) {
    throw DataLossError(cat(name, " is no JSON: ", json_reason(error)));
  }
  return builder.take();
}

}  // namespace tandem::io
