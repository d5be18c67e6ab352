#include "tests/reference/shapes.h"

#include "tests/reference/adapter.h"

namespace reference {
namespace {

struct Level {
  const char* key;
  Knowledge knowledge;
  bool as_precise;
};
// With nothing known, TensorFlow knows ranks that follow from the op alone; that is a courtesy, not
// a need.
constexpr Level kLevels[] = {{"full", Knowledge::kShapes, true},
                             {"rank", Knowledge::kRanks, true},
                             {"none", Knowledge::kNothing, false}};

KnownShape shape_of(const nlohmann::json& record) {
  if (record.is_null()) return std::nullopt;
  return record.get<std::vector<std::int64_t>>();
}

std::string text_of(const KnownShape& shape) {
  if (!shape) return "<unknown>";
  std::string text = "[";
  for (std::size_t i = 0; i < shape->size(); ++i) {
    text += (i ? "," : "") + ((*shape)[i] < 0 ? std::string("?") : std::to_string((*shape)[i]));
  }
  return text + "]";
}

bool contradicts(const KnownShape& inferred, const std::vector<std::int64_t>& actual) {
  if (!inferred) return false;
  if (inferred->size() != actual.size()) return true;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if ((*inferred)[i] >= 0 && (*inferred)[i] != actual[i]) return true;
  }
  return false;
}

bool knows_less(const KnownShape& ours, const KnownShape& theirs) {
  if (!theirs) return false;
  if (!ours) return true;
  for (std::size_t i = 0; i < theirs->size() && i < ours->size(); ++i) {
    if ((*theirs)[i] >= 0 && (*ours)[i] < 0) return true;
  }
  return false;
}

void check_level(const Case& c, const Level& level, std::vector<std::string>& problems) {
  const nlohmann::json& stored = c.shapes.at(level.key);
  if (stored.is_string()) return;  // TensorFlow's shape function refuses: a case that fails.
  const std::vector<Value>& outputs = c.runs.empty() ? c.outputs : c.runs.front();
  const std::string prefix = std::string("shape function, ") + level.key + ": ";
  std::vector<KnownShape> found;
  try {
    found = infer_shapes(c.call, level.knowledge);
  } catch (const Refusal& refusal) {
    problems.push_back(prefix + "error " + refusal.code() + ": " + refusal.what());
    return;
  }
  if (found.size() != outputs.size()) {
    problems.push_back(prefix + std::to_string(found.size()) + " outputs, want " +
                       std::to_string(outputs.size()));
    return;
  }
  for (std::size_t i = 0; i < found.size(); ++i) {
    const KnownShape theirs = shape_of(stored.at(i));
    const std::string output = prefix + "output " + std::to_string(i) + " is " + text_of(found[i]);
    if (contradicts(found[i], outputs[i].shape)) {
      problems.push_back(output + ", but the value has " + outputs[i].type());
    } else if (level.as_precise && knows_less(found[i], theirs)) {
      problems.push_back(output + ", TensorFlow knows " + text_of(theirs));
    }
  }
}

}  // namespace

std::vector<std::string> check_shapes(const Case& c) {
  std::vector<std::string> problems;
  if (c.shapes.is_null() || !c.error.empty()) return problems;
  for (const Level& level : kLevels) check_level(c, level, problems);
  return problems;
}

}  // namespace reference
