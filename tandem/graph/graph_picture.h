#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tandem/core/export.h"

namespace tandem {

/// Text as it stands in a page.
TANDEM_EXPORT std::string escape_html(std::string_view text);

/// A graph for a page: nodes in layers from inputs to outputs, folded by name scope as TensorBoard
/// does ("a/b" lies in the group "a"). The page opens with a picture that fits its window; a click
/// opens and closes a group. The browser draws only what is visible, so graphs may be large.
class TANDEM_EXPORT GraphPicture {
 public:
  struct Node {
    std::string name;
    std::string op;             ///< the second line; what follows " · " is no part of the op
    std::string details;        ///< shown where the node is pointed at
    std::string css_class;      ///< beside "node"
    std::vector<int> inputs;    ///< numbers of nodes added earlier; others are not drawn
    std::vector<int> controls;  ///< nodes it waits for
    double seconds = 0;         ///< groups show the sum of their nodes'
  };
  /// The node's number: 0, 1, …
  int add(Node node);
  std::size_t size() const { return nodes_.size(); }

  /// An empty `<svg>` and the nodes as JSON, which the script draws.
  std::string svg() const;
  /// The rules for the drawing's parts, between `<style>` tags.
  static const char* style();
  /// Draws, lets the user fold, drag, zoom and find nodes (an `<input class="find">`, Enter goes to
  /// the first), and fits the picture again (a `<button class="fit">`). Between `<script>` tags.
  static const char* script();

 private:
  std::vector<Node> nodes_;
};

}  // namespace tandem
