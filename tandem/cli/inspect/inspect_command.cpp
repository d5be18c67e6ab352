#include <algorithm>
#include <cstring>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "tandem/cli/commands.h"
#include "tandem/cli/inspect/contents.h"
#include "tandem/cli/inspect/statistics.h"
#include "tandem/core/error.h"

namespace tandem::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : ",") + std::to_string(size);
  return "[" + text + "]";
}

std::string number(double value) {
  std::ostringstream out;
  out.precision(6);
  out << value;
  return out.str();
}

std::string plain(const Json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// What is nested stands below its name, further in.
void print_facts(const Json& facts, const std::string& indent) {
  for (const auto& item : facts.items()) {
    const Json& value = item.value();
    const bool nested = value.is_object() && !value.empty();
    const bool lines = value.is_array() && !value.empty() &&
                       std::all_of(value.begin(), value.end(),
                                   [](const Json& v) { return v.is_string() || v.is_object(); });
    if (nested) {
      std::cout << indent << item.key() << ":\n";
      print_facts(value, indent + "  ");
    } else if (lines) {
      std::cout << indent << item.key() << ":\n";
      for (const Json& line : value) {
        if (line.is_object()) {
          print_facts(line, indent + "  ");
        } else {
          std::cout << indent << "  " << plain(line) << '\n';
        }
      }
    } else if (!value.empty()) {
      std::cout << indent << item.key() << ": " << plain(value) << '\n';
    }
  }
}

Json statistics_json(const FileTensor& tensor) {
  const auto s = tensor.read ? statistics_of(tensor.read()) : std::nullopt;
  if (!s) return nullptr;
  return {{"min", s->min},     {"max", s->max}, {"mean", s->mean},        {"std", s->deviation},
          {"zeros", s->zeros}, {"nan", s->nan}, {"infinite", s->infinite}};
}

void print_tensors(const FileContents& contents, bool stats) {
  if (contents.tensors.empty()) return;
  std::size_t name = 4, dtype = 5, shape = 5;
  std::uint64_t bytes = 0;
  for (const FileTensor& t : contents.tensors) {
    name = std::max(name, std::min<std::size_t>(t.name.size(), 80));
    dtype = std::max(dtype, t.dtype.size());
    shape = std::max(shape, shape_text(t.shape).size());
    bytes += t.bytes;
  }
  const auto cell = [](std::string text, std::size_t width) {
    text.resize(std::max(width, text.size()), ' ');
    return text + "  ";
  };
  for (const FileTensor& t : contents.tensors) {
    std::cout << cell(t.name, name) << cell(t.dtype, dtype) << cell(shape_text(t.shape), shape)
              << t.bytes << " bytes";
    if (stats) {
      const Json s = statistics_json(t);
      for (const auto& item : s.items()) {
        const bool count = item.value().is_number_integer();
        if (count && item.value() == 0) continue;
        std::cout << "  " << item.key() << ' '
                  << (count ? item.value().dump() : number(item.value().get<double>()));
      }
    }
    std::cout << '\n';
  }
  std::cout << contents.tensors.size()
            << (contents.tensors.size() == 1 ? " tensor, " : " tensors, ") << bytes << " bytes\n";
}

Json to_json(const FileContents& contents, const std::string& path, bool stats) {
  Json json = {{"path", path},
               {"format", contents.format},
               {"facts", contents.facts},
               {"tensors", Json::array()}};
  for (const FileTensor& t : contents.tensors) {
    Json entry = {{"name", t.name}, {"dtype", t.dtype}, {"shape", t.shape}, {"bytes", t.bytes}};
    if (stats) entry["stats"] = statistics_json(t);
    json["tensors"].push_back(std::move(entry));
  }
  return json;
}

void print_json(const Json& json) {
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

// Equal to the bit, so that a NaN equals itself.
bool same_elements(const Array& a, const Array& b) {
  if (is_object(a.dtype())) return a == b;
  return a.num_bytes() == 0 || std::memcmp(a.raw_data(), b.raw_data(), a.num_bytes()) == 0;
}

struct Difference {
  std::string name;
  std::string what;
};

std::vector<Difference> differences(const FileContents& a, const FileContents& b) {
  std::vector<Difference> found;
  std::map<std::string, const FileTensor*> of_a, of_b;
  std::set<std::string> names;
  for (const FileTensor& t : a.tensors) names.insert((of_a[t.name] = &t)->name);
  for (const FileTensor& t : b.tensors) names.insert((of_b[t.name] = &t)->name);
  for (const std::string& name : names) {
    const auto in_a = of_a.find(name), in_b = of_b.find(name);
    if (in_b == of_b.end()) {
      found.push_back({name, "only in the first"});
    } else if (in_a == of_a.end()) {
      found.push_back({name, "only in the second"});
    } else {
      const FileTensor &x = *in_a->second, &y = *in_b->second;
      if (x.dtype != y.dtype || x.shape != y.shape) {
        found.push_back(
            {name, cat(x.dtype, shape_text(x.shape), " and ", y.dtype, shape_text(y.shape))});
      } else if (x.read && y.read) {
        const Array left = x.read(), right = y.read();
        if (same_elements(left, right)) continue;
        const auto most = largest_difference(left, right);
        found.push_back({name, most ? cat("elements differ by up to ", number(*most))
                                    : std::string("elements differ")});
      }
    }
  }
  // What is no tensor counts where the formats are one: a checkpoint's prefix says nothing.
  if (a.format == b.format && a.format != "checkpoint" && a.facts != b.facts) {
    for (const auto& item : a.facts.items()) {
      if (!b.facts.contains(item.key()) || b.facts[item.key()] != item.value())
        found.push_back({item.key(), "differs"});
    }
    for (const auto& item : b.facts.items()) {
      if (!a.facts.contains(item.key())) found.push_back({item.key(), "only in the second"});
    }
  }
  return found;
}

int compare(const InspectArguments& arguments) {
  const FileContents a = open_contents(arguments.path), b = open_contents(arguments.other);
  const std::vector<Difference> found = differences(a, b);
  if (arguments.json) {
    Json list = Json::array();
    for (const Difference& d : found) list.push_back({{"name", d.name}, {"what", d.what}});
    print_json({{"first", arguments.path}, {"second", arguments.other}, {"differences", list}});
  } else {
    for (const Difference& d : found) std::cout << d.name << ": " << d.what << '\n';
    if (found.empty()) std::cout << "no differences\n";
  }
  return found.empty() ? 0 : 1;
}

}  // namespace

int run_inspect(const InspectArguments& arguments) {
  if (!arguments.other.empty()) return compare(arguments);
  const FileContents contents = open_contents(arguments.path);
  if (arguments.json) {
    print_json(to_json(contents, arguments.path, arguments.stats));
    return 0;
  }
  if (contents.text.empty()) {
    std::cout << arguments.path << ": " << contents.format << '\n';
    print_facts(contents.facts, "");
  } else {
    std::cout << contents.text;
  }
  print_tensors(contents, arguments.stats);
  return 0;
}

}  // namespace tandem::cli
