#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"

namespace tandem {

/// Text as it stands in a page.
TANDEM_EXPORT std::string escape_html(std::string_view text);

/// A graph drawn for a page (SVG): nodes in layers from inputs to outputs.
class TANDEM_EXPORT GraphPicture {
 public:
  struct Node {
    std::string name;
    std::string op;
    std::string details;        ///< shown where the node is pointed at
    std::string css_class;      ///< beside "node"
    std::vector<int> inputs;    ///< numbers of nodes added earlier; others are not drawn
    std::vector<int> controls;  ///< nodes it waits for
  };
  /// The node's number: 0, 1, …
  int add(Node node);
  std::size_t size() const { return nodes_.size(); }

  /// `<svg>` with a group "view" that the script moves and scales.
  std::string svg() const;
  /// The rules for the drawing's parts, between `<style>` tags.
  static const char* style();
  /// Lets the user drag, zoom and find nodes (an `<input class="find">`), between `<script>` tags.
  static const char* script();

 private:
  struct Box;
  std::vector<Box> place() const;
  std::vector<Node> nodes_;
};

}  // namespace tandem
