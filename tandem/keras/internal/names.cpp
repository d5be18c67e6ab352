#include "tandem/keras/internal/names.h"

#include <cctype>
#include <map>
#include <mutex>

#include "tandem/core/error.h"
#include "tandem/core/never_destroyed.h"
#include "tandem/graph/op_registry.h"
#include "tandem/keras/session.h"
#include "tandem/ops/random_ops.h"

namespace tandem::keras {
namespace internal {
namespace {

struct Counters {
  std::mutex mutex;
  std::map<std::string, int> counts;
};

Counters& counters() {
  static NeverDestroyed<Counters> instance;
  return *instance;
}

bool upper(char c) { return std::isupper(static_cast<unsigned char>(c)) != 0; }
bool lower(char c) { return std::islower(static_cast<unsigned char>(c)) != 0; }

}  // namespace

std::string snake_case(std::string_view class_name) {
  std::string name;
  for (std::size_t i = 0; i < class_name.size(); ++i) {
    const char c = class_name[i];
    const bool starts_word = i + 1 < class_name.size() && lower(class_name[i + 1]);
    if (i > 0 && upper(c) && (starts_word || lower(class_name[i - 1])) && name.back() != '_') {
      name += '_';
    }
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return name;
}

std::string auto_name(std::string_view class_name) {
  const std::string base = snake_case(class_name);
  Counters& all = counters();
  std::lock_guard lock(all.mutex);
  const int count = all.counts[base]++;
  return count == 0 ? base : base + "_" + std::to_string(count);
}

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += separator;
    text += word;
  }
  return text;
}

std::string no_such(std::string_view kind, const std::string& name,
                    const std::vector<std::string>& names) {
  const std::string near = nearest_name(name, names);
  const std::string hint = near.empty() ? std::string() : cat("Did you mean '", near, "'? ");
  return cat("There is no ", kind, " '", name, "'. ", hint, "Choose one of ", join(names));
}

}  // namespace internal

void clear_session() {
  internal::Counters& all = internal::counters();
  std::lock_guard lock(all.mutex);
  all.counts.clear();
}

void utils::set_random_seed(std::int64_t seed) {
  if (seed < 0 || seed > 0xFFFFFFFF)
    throw InvalidArgumentError(cat("Seed must be between 0 and 2**32 - 1, got ", seed, "."));
  tandem::random::set_seed(seed);
}

}  // namespace tandem::keras
