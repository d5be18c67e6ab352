#include "tandem/core/attr.h"

#include <algorithm>
#include <sstream>

#include "tandem/core/name_argument.h"

namespace tandem {
namespace {

constexpr const char* kKinds[] = {"unset",        "int",        "float",       "bool",
                                  "string",       "type",       "shape",       "tensor",
                                  "func",         "list(int)",  "list(float)", "list(bool)",
                                  "list(string)", "list(type)", "list(shape)", "list(func)"};

struct Printer {
  std::ostringstream out;
  void operator()(std::monostate) { out << "unset"; }
  void operator()(std::int64_t v) { out << v; }
  void operator()(float v) { out << v; }
  void operator()(bool v) { out << (v ? "true" : "false"); }
  void operator()(const std::string& v) { out << '"' << v << '"'; }
  void operator()(DType v) { out << v; }
  void operator()(const PartialShape& v) { out << v; }
  void operator()(const std::shared_ptr<const Array>& v) {
    out << "tensor<" << v->dtype() << v->shape() << ">";
    if (v->num_elements() <= 8) out << ' ' << v->to_string();
  }
  void operator()(const FunctionRef& v) { out << (v ? "func" : "no func"); }
  template <class T>
  void operator()(const std::vector<T>& list) {
    out << '[';
    bool first = true;
    for (const auto& v : list) {
      if (!first) out << ", ";
      first = false;
      (*this)(static_cast<const T&>(v));
    }
    out << ']';
  }
};

struct Same {
  const AttrValue::Storage& other;
  bool operator()(const std::shared_ptr<const Array>& v) const {
    return *v == *std::get<std::shared_ptr<const Array>>(other);
  }
  template <class T>
  bool operator()(const T& v) const {
    return v == std::get<T>(other);
  }
};

}  // namespace

AttrValue::AttrValue() noexcept = default;
AttrValue::AttrValue(Integer value) : storage_(value.value) {}
AttrValue::AttrValue(float value) : storage_(value) {}
AttrValue::AttrValue(double value) : storage_(static_cast<float>(value)) {}
AttrValue::AttrValue(bool value) : storage_(value) {}
AttrValue::AttrValue(const char* value)
    : storage_(internal::name_argument(value, "the value of an attribute")) {}
AttrValue::AttrValue(std::string_view value) : storage_(std::string(value)) {}
AttrValue::AttrValue(std::string value) : storage_(std::move(value)) {}
AttrValue::AttrValue(DType value) : storage_(value) {}
AttrValue::AttrValue(PartialShape value) : storage_(std::move(value)) {}
AttrValue::AttrValue(const Shape& value) : storage_(PartialShape(value)) {}
AttrValue::AttrValue(Array value) : storage_(std::make_shared<const Array>(std::move(value))) {}
AttrValue::AttrValue(FunctionRef value) : storage_(std::move(value)) {}
AttrValue::AttrValue(std::vector<std::int64_t> value) : storage_(std::move(value)) {}
AttrValue::AttrValue(std::vector<float> value) : storage_(std::move(value)) {}
AttrValue::AttrValue(std::vector<bool> value) : storage_(std::move(value)) {}
AttrValue::AttrValue(std::vector<std::string> value) : storage_(std::move(value)) {}
AttrValue::AttrValue(std::vector<DType> value) : storage_(std::move(value)) {}
AttrValue::AttrValue(std::vector<PartialShape> value) : storage_(std::move(value)) {}
AttrValue::AttrValue(std::vector<FunctionRef> value) : storage_(std::move(value)) {}
AttrValue::AttrValue(const AttrValue& other) = default;
AttrValue::AttrValue(AttrValue&& other) noexcept = default;
AttrValue& AttrValue::operator=(const AttrValue& other) = default;
AttrValue& AttrValue::operator=(AttrValue&& other) noexcept = default;
AttrValue::~AttrValue() = default;

std::string AttrValue::kind() const { return kKinds[storage_.index()]; }

std::string AttrValue::to_string() const {
  Printer printer;
  std::visit(printer, storage_);
  return std::move(printer.out).str();
}

bool AttrValue::operator==(const AttrValue& other) const {
  return storage_.index() == other.storage_.index() && std::visit(Same{other.storage_}, storage_);
}

AttrMap::AttrMap(std::initializer_list<Entry> entries) : entries_(entries) {}

void AttrMap::set(std::string_view name, AttrValue value) {
  for (Entry& e : entries_) {
    if (e.name == name) {
      e.value = std::move(value);
      return;
    }
  }
  entries_.push_back({std::string(name), std::move(value)});
}

void AttrMap::erase(std::string_view name) {
  std::erase_if(entries_, [&](const Entry& e) { return e.name == name; });
}

bool AttrMap::operator==(const AttrMap& other) const {
  return size() == other.size() && std::all_of(begin(), end(), [&](const Entry& e) {
           const AttrValue* v = other.find(e.name);
           return v && *v == e.value;
         });
}

}  // namespace tandem
