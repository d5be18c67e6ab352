#include "tandem/graph/graph_picture.h"

#include <ostream>
#include <sstream>
#include <utility>

namespace tandem {

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

namespace {

// A text as JSON that may stand within a page: `<` could end the script around it.
void write_json(std::ostream& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out << '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out << '\\' << c;
    } else if (c == '\n') {
      out << "\\n";
    } else if (byte < 0x20 || c == '<') {
      out << "\\u00" << kHex[byte >> 4] << kHex[byte & 15];
    } else {
      out << c;
    }
  }
  out << '"';
}

template <class Items, class Write>
void write_list(std::ostream& out, const Items& items, Write write) {
  out << '[';
  bool first = true;
  for (const auto& item : items) {
    if (!first) out << ',';
    first = false;
    write(item);
  }
  out << ']';
}

}  // namespace

int GraphPicture::add(Node node) {
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size()) - 1;
}

std::string GraphPicture::svg() const {
  std::ostringstream out;
  const auto texts = [&](const char* name, std::string Node::*member) {
    out << '"' << name << "\":";
    write_list(out, nodes_, [&](const Node& node) { write_json(out, node.*member); });
    out << ",\n";
  };
  const auto edges = [&](const char* name, std::vector<int> Node::*member) {
    int number = 0;
    out << '"' << name << "\":";
    write_list(out, nodes_, [&](const Node& node) {
      std::vector<int> known;
      for (const int from : node.*member) {
        if (from >= 0 && from < number) known.push_back(from);
      }
      write_list(out, known, [&](int from) { out << from; });
      ++number;
    });
    out << ",\n";
  };
  out << "<svg class=\"graph\"><g class=\"view\"></g></svg>\n"
         "<script type=\"application/json\">{";
  texts("names", &Node::name);
  texts("ops", &Node::op);
  texts("details", &Node::details);
  texts("classes", &Node::css_class);
  edges("inputs", &Node::inputs);
  edges("controls", &Node::controls);
  out << "\"seconds\":";
  write_list(out, nodes_, [&](const Node& node) { out << node.seconds; });
  out << "}</script>\n";
  return std::move(out).str();
}

}  // namespace tandem
