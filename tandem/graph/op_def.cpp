#include "tandem/graph/op_def.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>

#include "tandem/core/error.h"

namespace tandem {
namespace {

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\n')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\n')) s.remove_suffix(1);
  return s;
}

// Splits at `separator` outside brackets, braces, parentheses and quotes.
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == separator && depth == 0 && !quoted)) {
      const std::string_view part = trim(text.substr(begin, i - begin));
      if (!part.empty()) parts.push_back(part);
      begin = i + 1;
      continue;
    }
    const char c = text[i];
    if (c == '\'') quoted = !quoted;
    if (quoted) continue;
    if (c == '(' || c == '{' || c == '[') ++depth;
    if (c == ')' || c == '}' || c == ']') --depth;
  }
  return parts;
}

std::optional<DTypeSet> named_set(std::string_view name) {
  if (name == "floats") return kFloatTypes;
  if (name == "complexes") return kComplexTypes;
  if (name == "reals") return kRealTypes;
  if (name == "numbers") return kNumberTypes;
  if (name == "integers") return kIntegerTypes;
  if (name == "signed") return kSignedTypes;
  if (name == "unsigned") return kUnsignedTypes;
  if (name == "index") return kIndexTypes;
  if (name == "pod") return kPodTypes;
  if (name == "all") return kAllTypes;
  return std::nullopt;
}

[[noreturn]] void malformed(const char* op, std::string_view what) {
  throw InternalError(cat("The declaration of op ", op, " is malformed at '", what, "'."));
}

// What stands between an opening and a closing character.
std::string_view inside(const char* op, std::string_view s, char open, char close) {
  if (s.size() < 2 || s.front() != open || s.back() != close) malformed(op, s);
  return s.substr(1, s.size() - 2);
}

std::string unquote(const char* op, std::string_view s) {
  return std::string(inside(op, s, '\'', '\''));
}

template <class T>
T parse_number(const char* op, std::string_view text) {
  std::istringstream in{std::string(text)};
  T value{};
  if (!(in >> value) || in.peek() != std::istringstream::traits_type::eof()) malformed(op, text);
  return value;
}

AttrValue parse_value(const char* op, const std::string& kind, std::string_view text) {
  if (kind == "int") return AttrValue(parse_number<std::int64_t>(op, text));
  if (kind == "float") return AttrValue(parse_number<float>(op, text));
  if (kind == "bool" && (text == "true" || text == "false")) return AttrValue(text == "true");
  if (kind == "string") return AttrValue(unquote(op, text));
  if (kind == "type") {
    const auto t = parse_dtype(text);
    if (!t) malformed(op, text);
    return AttrValue(*t);
  }
  if (kind == "shape") {
    if (text == "unknown") return AttrValue(PartialShape::unknown());
    std::vector<std::int64_t> dims;
    for (auto d : split(inside(op, text, '[', ']'), ','))
      dims.push_back(parse_number<std::int64_t>(op, d));
    return AttrValue(PartialShape(dims));
  }
  if (kind == "tensor") {  // "uint8[255, 0]": a vector of bytes, all that ops need
    if (!text.starts_with("uint8")) malformed(op, text);
    std::vector<std::uint8_t> bytes;
    for (auto item : split(inside(op, text.substr(5), '[', ']'), ','))
      bytes.push_back(static_cast<std::uint8_t>(parse_number<int>(op, item)));
    return AttrValue(Array::vector(bytes));
  }
  if (kind.starts_with("list(")) {
    const std::string element = kind.substr(5, kind.size() - 6);
    const auto items = split(inside(op, text, '[', ']'), ',');
    std::vector<AttrValue> values;
    for (auto item : items) values.push_back(parse_value(op, element, item));
    const auto collect = [&]<class T>(T) {
      std::vector<T> list;
      for (const auto& v : values) list.push_back(*v.get_if<T>());
      return AttrValue(std::move(list));
    };
    if (element == "int") return collect(std::int64_t{});
    if (element == "float") return collect(float{});
    if (element == "bool") return collect(bool{});
    if (element == "string") return collect(std::string{});
    if (element == "type") return collect(DType{});
    if (element == "shape") return collect(PartialShape{});
  }
  malformed(op, text);
}

bool is_kind(std::string_view kind) {
  constexpr std::string_view kKinds[] = {"int",  "float", "bool",   "string",
                                         "type", "shape", "tensor", "func"};
  if (kind.starts_with("list(") && kind.ends_with(")")) kind = kind.substr(5, kind.size() - 6);
  return std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
}

AttrDef parse_attr(const char* op, std::string_view text) {
  AttrDef attr;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) malformed(op, text);
  attr.name = std::string(trim(text.substr(0, colon)));
  std::string_view rest = trim(text.substr(colon + 1));
  if (rest.ends_with('=')) malformed(op, text);
  std::string_view default_text;
  const auto sides = split(rest, '=');
  if (sides.size() == 2 && sides[0].back() != '>') {
    rest = sides[0];
    default_text = sides[1];
  } else if (sides.size() == 3) {  // "int >= 1 = 2"
    default_text = sides[2];
    rest = trim(rest.substr(0, rest.rfind('=')));
  }
  if (const std::size_t at = rest.find(">="); at != std::string_view::npos) {
    attr.minimum = parse_number<std::int64_t>(op, trim(rest.substr(at + 2)));
    attr.has_minimum = true;
    rest = trim(rest.substr(0, at));
  }
  bool list = false;
  if (rest.starts_with("list(") && rest.ends_with(")")) {
    list = true;
    rest = trim(rest.substr(5, rest.size() - 6));
  }
  std::string kind(rest);
  if (const auto set = named_set(rest)) {
    attr.allowed_types = *set;
    kind = "type";
  } else if (rest.starts_with("{")) {
    const auto items = split(inside(op, rest, '{', '}'), ',');
    if (items.empty()) malformed(op, text);
    if (items[0].front() == '\'') {
      kind = "string";
      for (auto item : items) attr.allowed_strings.push_back(unquote(op, item));
    } else {
      kind = "type";
      for (auto item : items) {
        const auto t = parse_dtype(item);
        if (!t) malformed(op, item);
        attr.allowed_types = attr.allowed_types | DTypeSet{*t};
      }
    }
  }
  attr.kind = list ? "list(" + kind + ")" : kind;
  if (!is_kind(attr.kind)) malformed(op, text);
  if (!default_text.empty()) attr.default_value = parse_value(op, attr.kind, default_text);
  return attr;
}

ArgDef parse_arg(const char* op, std::string_view text, const std::vector<AttrDef>& attrs) {
  ArgDef arg;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0) malformed(op, text);
  arg.name = std::string(trim(text.substr(0, colon)));
  std::string_view type = trim(text.substr(colon + 1));
  if (type.starts_with("Ref(") && type.ends_with(")")) {
    arg.is_ref = true;
    type = type.substr(4, type.size() - 5);
  }
  if (const std::size_t star = type.find('*'); star != std::string_view::npos) {
    arg.number_attr = std::string(trim(type.substr(0, star)));
    type = trim(type.substr(star + 1));
    const bool counts = std::any_of(attrs.begin(), attrs.end(), [&](const AttrDef& a) {
      return a.name == arg.number_attr && a.kind == "int";
    });
    if (!counts) malformed(op, text);
  }
  const auto attr =
      std::find_if(attrs.begin(), attrs.end(), [&](const AttrDef& a) { return a.name == type; });
  if (attr == attrs.end()) {
    const auto t = parse_dtype(type);
    if (!t) malformed(op, text);
    arg.dtype = *t;
  } else if (attr->kind == "list(type)") {
    arg.type_list_attr = std::string(type);
  } else {
    arg.type_attr = std::string(type);
  }
  return arg;
}

void mark_inferred(OpDef& op) {
  const auto mark = [&](const std::string& name) {
    for (AttrDef& a : op.attrs) {
      if (a.name == name) a.inferred = true;
    }
  };
  for (const ArgDef& in : op.inputs) {
    mark(in.type_attr);
    mark(in.number_attr);
    mark(in.type_list_attr);
  }
}

template <class Named>
void check_names(const char* op, const std::vector<Named>& list) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (list[i].name == list[k].name) malformed(op, list[i].name);
    }
  }
}

// What the parts of a declaration cannot show by themselves.
void check_whole(const OpDef& op) {
  check_names(op.name.c_str(), op.attrs);
  check_names(op.name.c_str(), op.inputs);
  check_names(op.name.c_str(), op.outputs);
  for (const AttrDef& attr : op.attrs) {
    if (attr.default_value.empty()) continue;
    try {
      check_attr(op, attr, attr.default_value);
    } catch (const InvalidArgumentError&) {
      malformed(op.name.c_str(), attr.name);
    }
  }
}

}  // namespace

OpDef OpDef::parse(const OpDecl& decl, std::uint32_t id) {
  OpDef op;
  op.name = decl.name;
  op.shape = decl.shape;
  op.gradient = decl.gradient;
  op.rewrite = decl.rewrite;
  op.fuse = decl.fuse;
  op.flops = decl.flops;
  op.traits = decl.traits;
  op.doc = decl.doc;
  op.id = id;
  for (auto text : split(decl.attrs, ';')) op.attrs.push_back(parse_attr(decl.name, text));
  for (auto text : split(decl.inputs, ','))
    op.inputs.push_back(parse_arg(decl.name, text, op.attrs));
  for (auto text : split(decl.outputs, ','))
    op.outputs.push_back(parse_arg(decl.name, text, op.attrs));
  mark_inferred(op);
  check_whole(op);
  const auto is_list = [](const ArgDef& a) { return a.is_list(); };
  op.plain_arguments = std::none_of(op.inputs.begin(), op.inputs.end(), is_list) &&
                       std::none_of(op.outputs.begin(), op.outputs.end(), is_list);
  for (const ArgDef& out : op.outputs) {
    int like = -1;
    for (std::size_t i = 0; i < op.inputs.size() && like < 0; ++i) {
      if (!out.type_attr.empty() && op.inputs[i].type_attr == out.type_attr)
        like = static_cast<int>(i);
    }
    op.output_like_input.push_back(op.plain_arguments ? like : -1);
  }
  return op;
}

const AttrDef* OpDef::find_attr(std::string_view attr) const {
  for (const AttrDef& a : attrs) {
    if (a.name == attr) return &a;
  }
  return nullptr;
}

namespace {

void print_args(std::ostream& out, const std::vector<ArgDef>& args) {
  out << '(';
  for (std::size_t i = 0; i < args.size(); ++i) {
    const ArgDef& a = args[i];
    if (i) out << ", ";
    out << a.name << ": ";
    if (!a.number_attr.empty()) out << a.number_attr << " * ";
    const std::string type = !a.type_list_attr.empty() ? a.type_list_attr
                             : !a.type_attr.empty()    ? a.type_attr
                                                       : dtype_name(a.dtype);
    out << (a.is_ref ? "Ref(" + type + ")" : type);
  }
  out << ')';
}

void print_attr(std::ostream& out, const AttrDef& a) {
  out << "  " << a.name << ": " << a.kind;
  if (!a.allowed_types.empty()) {
    out << " in {";
    bool first = true;
    for (int i = 1; i < kDTypeCount; ++i) {
      if (!a.allowed_types.contains(static_cast<DType>(i))) continue;
      out << (first ? "" : ", ") << static_cast<DType>(i);
      first = false;
    }
    out << '}';
  }
  if (!a.allowed_strings.empty()) {
    out << " in {";
    for (std::size_t i = 0; i < a.allowed_strings.size(); ++i) {
      out << (i ? ", " : "") << '"' << a.allowed_strings[i] << '"';
    }
    out << '}';
  }
  if (a.has_minimum) out << " >= " << a.minimum;
  if (!a.default_value.empty()) out << " = " << a.default_value.to_string();
  if (a.inferred) out << "  (from the inputs)";
  out << '\n';
}

}  // namespace

std::string OpDef::to_string() const {
  std::ostringstream out;
  out << name;
  print_args(out, inputs);
  out << " -> ";
  print_args(out, outputs);
  out << '\n';
  for (const AttrDef& a : attrs) print_attr(out, a);
  out << "  gradient: "
      << (gradient == nullptr               ? "none"
          : gradient == &not_differentiable ? "not differentiable"
                                            : "yes")
      << (traits.stateful ? ", stateful" : "") << (traits.elementwise ? ", elementwise" : "")
      << '\n';
  if (!doc.empty()) out << "  " << doc << '\n';
  return std::move(out).str();
}

namespace {

[[noreturn]] void wrong(const OpDef& op, const std::string& what) {
  throw InvalidArgumentError(cat("Op ", op.name, ": ", what));
}

}  // namespace

void check_attr(const OpDef& op, const AttrDef& def, const AttrValue& value) {
  if (value.kind() != def.kind) {
    wrong(op, cat("attribute '", def.name, "' must be of kind ", def.kind, " but is ", value.kind(),
                  "."));
  }
  const auto check_type = [&](DType t) {
    if (!def.allowed_types.empty() && !def.allowed_types.contains(t)) {
      std::ostringstream list;
      print_attr(list, def);
      wrong(op, cat("dtype ", t, " is not allowed for attribute '", def.name, "':", list.str(),
                    "Use td::cast to convert the inputs."));
    }
  };
  if (const auto* t = value.get_if<DType>()) check_type(*t);
  if (const auto* list = value.get_if<std::vector<DType>>()) {
    for (DType t : *list) check_type(t);
    if (def.has_minimum && static_cast<std::int64_t>(list->size()) < def.minimum) {
      wrong(op, cat("needs at least ", def.minimum, " values for '", def.name, "' but got ",
                    list->size(), "."));
    }
  }
  if (const auto* s = value.get_if<std::string>(); s && !def.allowed_strings.empty()) {
    if (std::find(def.allowed_strings.begin(), def.allowed_strings.end(), *s) ==
        def.allowed_strings.end()) {
      std::string allowed;
      for (const auto& a : def.allowed_strings)
        allowed += (allowed.empty() ? "'" : ", '") + a + "'";
      wrong(op, cat("attribute '", def.name, "' must be one of ", allowed, " but is '", *s, "'."));
    }
  }
  if (const auto* i = value.get_if<std::int64_t>(); i && def.has_minimum && *i < def.minimum) {
    wrong(op,
          cat("attribute '", def.name, "' must be at least ", def.minimum, " but is ", *i, "."));
  }
}

namespace {

class Inference {
 public:
  Inference(const OpDef& op, const std::vector<DType>& inputs, const AttrMap& given)
      : op_(op), inputs_(inputs), attrs_(given) {}

  AttrMap run() {
    for (const auto& [name, value] : attrs_) {
      if (!op_.find_attr(name) && !name.starts_with("_"))
        wrong(op_, cat("has no attribute '", name, "'."));
    }
    infer();
    for (const AttrDef& def : op_.attrs) {
      const AttrValue* value = attrs_.find(def.name);
      if (!value && !def.default_value.empty()) {
        attrs_.set(def.name, def.default_value);
      } else if (!value) {
        wrong(op_, cat("attribute '", def.name, "' (", def.kind, ") must be given."));
      } else {
        check_attr(op_, def, *value);
      }
    }
    return std::move(attrs_);
  }

 private:
  void infer() {
    std::size_t next = 0;
    for (std::size_t a = 0; a < op_.inputs.size(); ++a) {
      const ArgDef& arg = op_.inputs[a];
      std::size_t count = 1;
      if (arg.is_list()) count = list_count(a, next);
      if (next + count > inputs_.size()) {
        wrong(op_, cat("expects ", needed_inputs(), " but got ", inputs_.size(), "."));
      }
      if (!arg.number_attr.empty()) set(arg.number_attr, static_cast<std::int64_t>(count));
      if (!arg.type_list_attr.empty()) {
        std::vector<DType> types;
        for (std::size_t i = 0; i < count; ++i) types.push_back(base_dtype(inputs_[next + i]));
        set_types(arg.type_list_attr, std::move(types));
      } else {
        for (std::size_t i = 0; i < count; ++i) check_input(arg, inputs_[next + i]);
      }
      next += count;
    }
    if (next != inputs_.size()) {
      wrong(op_, cat("expects ", next, next == 1 ? " input" : " inputs", " but got ",
                     inputs_.size(), "."));
    }
  }

  // "5 inputs", or "at least 5 inputs" where the length of a list is open.
  std::string needed_inputs() const {
    std::int64_t count = 0;
    bool open = false;
    for (const ArgDef& arg : op_.inputs) {
      const AttrValue* length =
          arg.is_list()
              ? attrs_.find(arg.number_attr.empty() ? arg.type_list_attr : arg.number_attr)
              : nullptr;
      const auto* n = length ? length->get_if<std::int64_t>() : nullptr;
      const auto* types = length ? length->get_if<std::vector<DType>>() : nullptr;
      open = open || (arg.is_list() && !n && !types);
      const std::int64_t own = !arg.is_list() ? 1
                               : n            ? std::clamp<std::int64_t>(*n, 0, INT32_MAX)
                               : types        ? std::ssize(*types)
                                              : 0;
      count += own;
    }
    return cat(open ? "at least " : "", count, count == 1 ? " input" : " inputs");
  }

  // The length of a list argument: as its attribute says, or all inputs that the other arguments
  // leave.
  std::size_t list_count(std::size_t index, std::size_t next) const {
    const ArgDef& arg = op_.inputs[index];
    if (const AttrValue* v =
            attrs_.find(arg.number_attr.empty() ? arg.type_list_attr : arg.number_attr)) {
      if (const auto* n = v->get_if<std::int64_t>())
        return static_cast<std::size_t>(std::max<std::int64_t>(*n, 0));
      if (const auto* types = v->get_if<std::vector<DType>>()) return types->size();
    }
    std::size_t after = 0;
    std::size_t same_list = 1;  // several lists of one length, as in "a: N * T, b: N * T"
    for (std::size_t i = index + 1; i < op_.inputs.size(); ++i) {
      const ArgDef& later = op_.inputs[i];
      if (!later.is_list()) {
        ++after;
      } else if (!later.number_attr.empty() && later.number_attr == arg.number_attr) {
        ++same_list;
      } else if (const AttrValue* v = attrs_.find(later.type_list_attr)) {
        if (const auto* types = v->get_if<std::vector<DType>>()) after += types->size();
      }
    }
    const std::size_t rest = inputs_.size() < next + after ? 0 : inputs_.size() - next - after;
    return rest / same_list;
  }

  void check_input(const ArgDef& arg, DType got) {
    if (arg.is_ref && !is_ref(got)) {
      wrong(op_, cat("input '", arg.name, "' passed ", got,
                     " expected ref type: a variable that can be changed."));
    }
    if (arg.type_attr.empty()) {
      if (base_dtype(got) != arg.dtype) {
        wrong(op_, cat("input '", arg.name, "' must be ", arg.dtype, " but is ", got,
                       ". Use td::cast."));
      }
      return;
    }
    if (const AttrValue* known = attrs_.find(arg.type_attr)) {
      const auto* t = known->get_if<DType>();
      if (t && *t != base_dtype(got)) {
        wrong(op_, cat("input '", arg.name, "' is ", got, " but must be ", *t,
                       " like the other values of type '", arg.type_attr,
                       "'. There is no implicit conversion between dtypes: use td::cast."));
      }
      return;
    }
    set(arg.type_attr, base_dtype(got));
  }

  void set(const std::string& name, AttrValue value) {
    if (const AttrValue* known = attrs_.find(name)) {
      if (!(*known == value)) {
        wrong(op_, cat("attribute '", name, "' is given as ", known->to_string(),
                       " but the inputs say ", value.to_string(), "."));
      }
      return;
    }
    attrs_.set(name, std::move(value));
  }
  void set_types(const std::string& name, std::vector<DType> types) { set(name, std::move(types)); }

  const OpDef& op_;
  const std::vector<DType>& inputs_;
  AttrMap attrs_;
};

}  // namespace

AttrMap complete_attrs(const OpDef& op, const std::vector<DType>& inputs, const AttrMap& given) {
  return Inference(op, inputs, given).run();
}

std::vector<DType> output_dtypes(const OpDef& op, const AttrMap& complete) {
  constexpr std::int64_t kMaxOutputs = 1
                                       << 24;  // a number alone may announce more than memory holds
  std::vector<DType> types;
  for (const ArgDef& out : op.outputs) {
    if (!out.type_list_attr.empty()) {
      const auto& list = *complete.find(out.type_list_attr)->get_if<std::vector<DType>>();
      types.insert(types.end(), list.begin(), list.end());
      continue;
    }
    const DType t =
        out.type_attr.empty() ? out.dtype : *complete.find(out.type_attr)->get_if<DType>();
    const std::int64_t count =
        out.number_attr.empty() ? 1 : *complete.find(out.number_attr)->get_if<std::int64_t>();
    if (count > kMaxOutputs) {
      wrong(op, cat("attribute '", out.number_attr, "' announces ", count, " outputs; at most ",
                    kMaxOutputs, " are possible."));
    }
    for (std::int64_t i = 0; i < count; ++i) types.push_back(out.is_ref ? ref_dtype(t) : t);
  }
  return types;
}

}  // namespace tandem
