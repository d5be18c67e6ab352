#include "tandem/keras/internal/pickle.h"

#include <bit>
#include <cstring>
#include <map>
#include <type_traits>
#include <unordered_map>

#include "tandem/core/error.h"

namespace tandem::keras::internal {
namespace {

// Moves what a value holds out of it.
void take_parts(Pickled& from, std::vector<PickledRef>& into) {
  if (auto* list = std::get_if<Pickled::List>(&from.value)) {
    for (PickledRef& value : list->values) into.push_back(std::move(value));
  } else if (auto* dict = std::get_if<Pickled::Dict>(&from.value)) {
    for (auto& [key, value] : dict->entries) {
      into.push_back(std::move(key));
      into.push_back(std::move(value));
    }
  } else if (auto* object = std::get_if<Pickled::Object>(&from.value)) {
    into.push_back(std::move(object->arguments));
    into.push_back(std::move(object->state));
  }
  from.value = Pickled::None();
}

// What a value holds, one after the other.
std::vector<const Pickled*> parts_of(const Pickled& value) {
  std::vector<const Pickled*> parts;
  if (const auto* list = std::get_if<Pickled::List>(&value.value)) {
    for (const PickledRef& part : list->values) parts.push_back(part.get());
  } else if (const auto* dict = std::get_if<Pickled::Dict>(&value.value)) {
    for (const auto& [key, part] : dict->entries)
      parts.insert(parts.end(), {key.get(), part.get()});
  } else if (const auto* object = std::get_if<Pickled::Object>(&value.value)) {
    parts = {object->arguments.get(), object->state.get()};
  }
  std::erase_if(parts, [](const Pickled* part) {
    return !part || (!std::holds_alternative<Pickled::List>(part->value) &&
                     !std::holds_alternative<Pickled::Dict>(part->value) &&
                     !std::holds_alternative<Pickled::Object>(part->value));
  });
  return parts;
}

// Whether one of the containers contains itself: a search in depth, without recursion.
bool is_cyclic(const std::vector<PickledRef>& containers) {
  struct Open {
    const Pickled* value;
    std::vector<const Pickled*> left;
  };
  std::unordered_map<const Pickled*, bool> open;  // of those that were seen
  for (const PickledRef& container : containers) {
    if (!open.emplace(container.get(), true).second) continue;
    std::vector<Open> path{{container.get(), parts_of(*container)}};
    while (!path.empty()) {
      Open& last = path.back();
      if (last.left.empty()) {
        open[last.value] = false;
        path.pop_back();
        continue;
      }
      const Pickled* part = last.left.back();
      last.left.pop_back();
      const auto [seen, is_new] = open.emplace(part, true);
      if (is_new) {
        path.push_back({part, parts_of(*part)});
      } else if (seen->second) {
        return true;
      }
    }
  }
  return false;
}

// The machine that pickles are programs of: a stack of values, marks in it, and a memo.
class Unpickler {
 public:
  Unpickler(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  PickledRef run() {
    while (true) {
      const auto op = static_cast<unsigned char>(take(1)[0]);
      if (op == '.') break;
      step(op);
    }
    if (is_cyclic(containers_)) damaged("a value contains itself");
    return pop();
  }
  // Values that contain themselves would otherwise stay after an error.
  void clear() {
    std::vector<PickledRef> parts;
    for (const PickledRef& container : containers_) take_parts(*container, parts);
  }

 private:
  [[noreturn]] void damaged(const char* what) const {
    throw DataLossError(cat(name_, ": the pickle is damaged at byte ", at_, ": ", what, "."));
  }

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) damaged("it ends too early");
    const std::string_view part = bytes_.substr(at_, static_cast<std::size_t>(count));
    at_ += static_cast<std::size_t>(count);
    return part;
  }
  std::uint64_t number(int bytes) {
    const std::string_view part = take(static_cast<std::uint64_t>(bytes));
    std::uint64_t value = 0;
    for (int i = bytes; i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(part[static_cast<std::size_t>(i)]);
    return value;
  }
  std::string line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) damaged("a line has no end");
    std::string text(bytes_.substr(at_, end - at_));
    at_ = end + 1;
    return text;
  }

  template <class T>
  void push(T value) {
    stack_.push_back(std::make_shared<Pickled>());
    stack_.back()->value = std::move(value);
    if constexpr (std::is_same_v<T, Pickled::List> || std::is_same_v<T, Pickled::Dict> ||
                  std::is_same_v<T, Pickled::Object>)
      containers_.push_back(stack_.back());
  }
  PickledRef pop() {
    if (stack_.empty()) damaged("its stack is empty");
    PickledRef top = std::move(stack_.back());
    stack_.pop_back();
    return top;
  }
  std::vector<PickledRef> pop_to_mark() {
    if (marks_.empty() || marks_.back() > stack_.size()) damaged("a mark is missing");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickledRef> values(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return values;
  }
  template <class T>
  T& top_as(const char* what) {
    if (stack_.empty()) damaged("its stack is empty");
    T* found = std::get_if<T>(&stack_.back()->value);
    if (!found) damaged(what);
    return *found;
  }
  void memoize(std::uint64_t key) {
    if (stack_.empty()) damaged("its stack is empty");
    memo_[key] = stack_.back();
  }
  void recall(std::uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) damaged("its memo has no such value");
    stack_.push_back(found->second);
  }
  void tuple(std::size_t count) {
    if (count > stack_.size()) damaged("its stack is too small");
    Pickled::List list;
    list.values.assign(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    push(std::move(list));
  }
  void global(const std::string& module, const std::string& attribute) {
    constexpr std::size_t kMaxName = 256;  // a call copies it
    if (module.size() > kMaxName || attribute.size() > kMaxName) damaged("a name is too long");
    push(Pickled::Object{.callable = module + " " + attribute, .arguments = {}, .state = {}});
  }
  std::string text_of(const PickledRef& value) const {
    const auto* text = std::get_if<std::string>(&value->value);
    if (!text) damaged("a name is no text");
    return *text;
  }
  // An integer of any length, of which those beyond 64 bits are refused.
  std::int64_t long_integer(std::uint64_t size) {
    if (size > 8) damaged("an integer is larger than 64 bits");
    const std::string_view part = take(size);
    std::uint64_t value = 0;
    for (std::size_t i = part.size(); i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(part[i]);
    if (!part.empty() && part.size() < 8 && (part.back() & 0x80) != 0)
      value |= ~std::uint64_t{0} << (8 * part.size());
    return static_cast<std::int64_t>(value);
  }
  std::int64_t integer_of(const std::string& text) {
    try {
      return std::stoll(text);
    } catch (const std::exception&) {
      damaged("an integer has no digits");
    }
  }

  std::string encoded(const Pickled& arguments) const;
  void step(unsigned char op);
  void build();
  void set_items();

  std::string_view bytes_;
  const std::string& name_;
  std::size_t at_ = 0;
  std::vector<PickledRef> stack_;
  std::vector<std::size_t> marks_;
  std::map<std::uint64_t, PickledRef> memo_;
  std::vector<PickledRef> containers_;
};

// Protocols before 3 have no bytes: Python 3 writes them as the text with these characters.
std::string Unpickler::encoded(const Pickled& arguments) const {
  const auto* list = std::get_if<Pickled::List>(&arguments.value);
  if (!list || list->values.size() != 2 || text_of(list->values[1]) != "latin1")
    damaged("bytes are encoded in another way than latin1");
  const std::string text = text_of(list->values[0]);
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    if (c >= 0x80) {
      if ((c != 0xC2 && c != 0xC3) || ++i == text.size()) damaged("a character is not of latin1");
      c = static_cast<unsigned char>((c << 6) | (text[i] & 0x3F));
    }
    bytes += static_cast<char>(c);
  }
  return bytes;
}

void Unpickler::build() {
  PickledRef state = pop();
  auto& object = top_as<Pickled::Object>("state is set of what is no object");
  object.state = std::move(state);
}

void Unpickler::set_items() {
  const std::vector<PickledRef> items = pop_to_mark();
  if (items.size() % 2 != 0) damaged("a dictionary has a key without a value");
  auto& dict = top_as<Pickled::Dict>("items are set of what is no dictionary");
  for (std::size_t i = 0; i < items.size(); i += 2)
    dict.entries.emplace_back(items[i], items[i + 1]);
}

void Unpickler::step(unsigned char op) {
  switch (op) {
    case 0x80: take(1); return;  // PROTO
    case 0x95: take(8); return;  // FRAME
    case '(': marks_.push_back(stack_.size()); return;
    case '0': pop(); return;
    case 'N': push(Pickled::None()); return;
    case 0x88: push(true); return;
    case 0x89: push(false); return;
    case 'K': push(static_cast<std::int64_t>(number(1))); return;
    case 'M': push(static_cast<std::int64_t>(number(2))); return;
    case 'J': push(std::int64_t{static_cast<std::int32_t>(number(4))}); return;
    case 'I': {
      const std::string text = line();
      if (text == "00" || text == "01") return push(text == "01");
      return push(integer_of(text));
    }
    case 'L': return push(integer_of(line()));
    case 0x8a: return push(long_integer(number(1)));
    case 0x8b: return push(long_integer(number(4)));
    case 'G': {
      std::uint64_t bits = 0;
      for (const char c : take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
      return push(std::bit_cast<double>(bits));
    }
    case 'C':
    case 'U':
    case 0x8c: return push(std::string(take(number(1))));
    case 'B':
    case 'T':
    case 'X': return push(std::string(take(number(4))));
    case 0x8d:
    case 0x8e:
    case 0x96: return push(std::string(take(number(8))));
    case ']': return push(Pickled::List());
    case 'a': {
      PickledRef value = pop();
      top_as<Pickled::List>("a value is appended to no list").values.push_back(std::move(value));
      return;
    }
    case 'e': {
      std::vector<PickledRef> values = pop_to_mark();
      auto& list = top_as<Pickled::List>("values are appended to no list");
      list.values.insert(list.values.end(), values.begin(), values.end());
      return;
    }
    case 'l':
    case 't': return push(Pickled::List{pop_to_mark()});
    case ')': return tuple(0);
    case 0x85: return tuple(1);
    case 0x86: return tuple(2);
    case 0x87: return tuple(3);
    case '}': return push(Pickled::Dict());
    case 's': {
      PickledRef value = pop(), key = pop();
      auto& dict = top_as<Pickled::Dict>("an item is set of no dictionary");
      dict.entries.emplace_back(std::move(key), std::move(value));
      return;
    }
    case 'u': return set_items();
    case 'c': {
      const std::string module = line();
      return global(module, line());
    }
    case 0x93: {
      const std::string attribute = text_of(pop()), module = text_of(pop());
      return global(module, attribute);
    }
    case 'R': {
      PickledRef arguments = pop();
      const PickledRef called = pop();
      const auto* callable = std::get_if<Pickled::Object>(&called->value);
      if (!callable) damaged("what is called is no function");
      if (callable->callable == "_codecs encode") return push(encoded(*arguments));
      Pickled::Object object = *callable;
      object.arguments = std::move(arguments);
      return push(std::move(object));
    }
    case 'b': return build();
    case 'q': return memoize(number(1));
    case 'r': return memoize(number(4));
    case 'p': return memoize(static_cast<std::uint64_t>(integer_of(line())));
    case 0x94: return memoize(memo_.size());
    case 'h': return recall(number(1));
    case 'j': return recall(number(4));
    case 'g': return recall(static_cast<std::uint64_t>(integer_of(line())));
    default:
      throw UnimplementedError(
          cat(name_, ": opcode ", int{op}, " of a pickle is not read here (byte ", at_, ")."));
  }
}

const Pickled::List* list_of(const PickledRef& value) {
  return value ? std::get_if<Pickled::List>(&value->value) : nullptr;
}

}  // namespace

// One after the other instead of each within the one around it.
Pickled::~Pickled() {
  std::vector<PickledRef> parts;
  take_parts(*this, parts);
  while (!parts.empty()) {
    const PickledRef part = std::move(parts.back());
    parts.pop_back();
    if (part && part.use_count() == 1) take_parts(*part, parts);
  }
}

PickledRef read_pickle(std::string_view bytes, const std::string& name) {
  Unpickler unpickler(bytes, name);
  try {
    return unpickler.run();
  } catch (...) {
    unpickler.clear();
    throw;
  }
}

PickledRef find_key(const Pickled& dict, std::string_view key) {
  const auto* entries = std::get_if<Pickled::Dict>(&dict.value);
  if (!entries) return nullptr;
  for (const auto& [name, value] : entries->entries) {
    const auto* text = std::get_if<std::string>(&name->value);
    if (text && *text == key) return value;
  }
  return nullptr;
}

// An array is made empty, then given (version, shape, dtype, is_fortran, content).
PickledArray array_of(const Pickled& value, const std::string& name) {
  const auto fail = [&]() {
    throw DataLossError(cat(name, ": a value in the pickle is no array."));
  };
  const auto* object = std::get_if<Pickled::Object>(&value.value);
  const Pickled::List* state = object ? list_of(object->state) : nullptr;
  if (!state || state->values.size() != 5) fail();
  PickledArray array;
  const Pickled::List* shape = list_of(state->values[1]);
  if (!shape) fail();
  for (const PickledRef& size : shape->values) {
    const auto* number = std::get_if<std::int64_t>(&size->value);
    if (!number || *number < 0) fail();
    array.shape.push_back(*number);
  }
  const auto* dtype = std::get_if<Pickled::Object>(&state->values[2]->value);
  const Pickled::List* made_of = dtype ? list_of(dtype->arguments) : nullptr;
  const auto* code = made_of && !made_of->values.empty()
                         ? std::get_if<std::string>(&made_of->values[0]->value)
                         : nullptr;
  if (!code) fail();
  array.dtype = *code;
  if (const auto* bytes = std::get_if<std::string>(&state->values[4]->value)) {
    array.bytes = *bytes;
  } else if (const Pickled::List* objects = list_of(state->values[4])) {
    array.objects = objects->values;
  } else {
    fail();
  }
  return array;
}

}  // namespace tandem::keras::internal
