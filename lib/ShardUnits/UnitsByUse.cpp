//===- UnitsByUse.cpp -----------------------------------------------------===//

#include "UnitsByUse.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

using namespace spmd;
using namespace spmd::units;

namespace {

/// Modules that will be in one unit.
struct Piece {
  std::vector<size_t> modules;
  /// Distinct ones, without what is ignored.
  std::vector<size_t> parameters;
  int64_t bytes = 0;
  int64_t firstUse = FirstUses::kNone;
  bool hasFrozen = false, hasTrainable = false;
  /// Has parameters of several pieces of the tree.
  bool isShared = false;
};

class Pieces {
public:
  Pieces(const ModuleTree &tree, const std::vector<bool> &ignoredModules, const std::vector<bool> &ignoredParameters);

  std::vector<Piece> take();

private:
  bool isContainer(size_t module) const;
  size_t countMembers(size_t module) const;
  /// The largest number of members of a container in the module, itself included.
  size_t countMembersBelow(size_t module) const;
  void visit(size_t module);
  void visitMember(size_t module);
  void add(size_t module);
  void joinShared();
  bool contains(size_t module, size_t below) const;
  void measure(Piece &piece) const;
  std::vector<size_t> getParameters(size_t module) const;
  int64_t getBytes(const std::vector<size_t> &parameters) const;

  const ModuleTree &tree;
  const std::vector<bool> &ignoredModules, &ignoredParameters;
  int64_t total = 0;
  std::vector<bool> seen;
  std::vector<Piece> pieces;
};

} // namespace

Pieces::Pieces(const ModuleTree &tree, const std::vector<bool> &ignoredModules,
               const std::vector<bool> &ignoredParameters)
    : tree(tree), ignoredModules(ignoredModules), ignoredParameters(ignoredParameters), seen(tree.numModules(), false) {
  total = getBytes(getParameters(0));
}

/// Whether every way from the root to `below` goes through `module`. What modules share is in none of them.
bool Pieces::contains(size_t module, size_t below) const {
  while (below != module && below != 0)
    below = tree.getAncestor(below);
  return below == module;
}

std::vector<size_t> Pieces::getParameters(size_t module) const {
  std::vector<size_t> found;
  for (size_t below : tree.getSubtree(module))
    if (!ignoredModules[below] && contains(module, below))
      for (size_t parameter : tree.getOwnParameters(below))
        if (!ignoredParameters[parameter])
          found.push_back(parameter);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

int64_t Pieces::getBytes(const std::vector<size_t> &parameters) const {
  int64_t bytes = 0;
  for (size_t parameter : parameters)
    bytes += tree.getNumel(parameter) * runtime::sizeOf(tree.getParameter(parameter).dtype);
  return bytes;
}

bool Pieces::isContainer(size_t module) const {
  for (const char *name : {"ModuleList", "ModuleDict", "Sequential"})
    if (tree.isInstance(module, std::string("torch.nn.modules.container.") + name, /*exact=*/true))
      return true;
  return false;
}

size_t Pieces::countMembers(size_t module) const {
  const std::vector<size_t> &children = tree.getChildren(module);
  return static_cast<size_t>(std::count_if(children.begin(), children.end(),
                                           [&](size_t child) { return !getParameters(child).empty(); }));
}

size_t Pieces::countMembersBelow(size_t module) const {
  size_t most = 0;
  for (size_t below : tree.getSubtree(module))
    if (isContainer(below))
      most = std::max(most, countMembers(below));
  return most;
}

void Pieces::visit(size_t module) {
  constexpr size_t kContainer = 2;
  if (isContainer(module) && countMembers(module) >= kContainer) {
    for (size_t member : tree.getChildren(module))
      visitMember(member);
    return;
  }
  if (module != 0 && countMembersBelow(module) < kContainer)
    return add(module);
  for (size_t child : tree.getChildren(module))
    visit(child);
}

void Pieces::visitMember(size_t module) {
  constexpr size_t kStage = 4;
  if (getBytes(getParameters(module)) >= total / 4 && countMembersBelow(module) >= kStage)
    visit(module);
  else
    add(module);
}

void Pieces::add(size_t module) {
  if (ignoredModules[module] || seen[module])
    return;
  seen[module] = true;
  if (Piece piece{{module}, getParameters(module)}; !piece.parameters.empty())
    pieces.push_back(std::move(piece));
}

/// Makes one piece of those that share a parameter, in the place of the first.
void Pieces::joinShared() {
  std::vector<size_t> leaders(pieces.size());
  std::iota(leaders.begin(), leaders.end(), 0);
  auto lead = [&](size_t piece) {
    while (leaders[piece] != piece)
      piece = leaders[piece];
    return piece;
  };
  std::map<size_t, size_t> holders; // by parameter the first piece that has it
  for (size_t i = 0; i < pieces.size(); ++i)
    for (size_t parameter : pieces[i].parameters) {
      size_t a = lead(holders.emplace(parameter, i).first->second), b = lead(i);
      leaders[std::max(a, b)] = std::min(a, b);
    }
  std::vector<Piece> joined;
  std::map<size_t, size_t> places; // in `joined`, by leader
  for (size_t i = 0; i < pieces.size(); ++i) {
    auto [place, isFirst] = places.emplace(lead(i), joined.size());
    if (isFirst) {
      joined.push_back(std::move(pieces[i]));
      continue;
    }
    Piece &into = joined[place->second];
    into.isShared = true;
    into.modules.insert(into.modules.end(), pieces[i].modules.begin(), pieces[i].modules.end());
    into.parameters.insert(into.parameters.end(), pieces[i].parameters.begin(), pieces[i].parameters.end());
    std::sort(into.parameters.begin(), into.parameters.end());
    into.parameters.erase(std::unique(into.parameters.begin(), into.parameters.end()), into.parameters.end());
  }
  pieces = std::move(joined);
}

void Pieces::measure(Piece &piece) const {
  piece.bytes = getBytes(piece.parameters);
  for (size_t parameter : piece.parameters) {
    const ParameterRecord &record = tree.getParameter(parameter);
    (record.trainable ? piece.hasTrainable : piece.hasFrozen) = true;
    if (record.firstUse != FirstUses::kNone && (piece.firstUse == FirstUses::kNone || record.firstUse < piece.firstUse))
      piece.firstUse = record.firstUse;
  }
}

/// In the order of use where the step is known; what it does not use comes last. Else in the order of registration.
std::vector<Piece> Pieces::take() {
  visit(0);
  joinShared();
  for (Piece &piece : pieces)
    measure(piece);
  bool isKnown = std::any_of(pieces.begin(), pieces.end(),
                             [](const Piece &piece) { return piece.firstUse != FirstUses::kNone; });
  auto position = [](const Piece &piece) {
    bool isUnused = piece.firstUse == FirstUses::kNone;
    return std::tuple(isUnused, piece.firstUse, piece.modules.front());
  };
  if (isKnown)
    std::sort(pieces.begin(), pieces.end(),
              [&](const Piece &a, const Piece &b) { return position(a) < position(b); });
  return std::move(pieces);
}

static bool mayJoin(const Piece &a, const Piece &b) {
  return !a.isShared && !b.isShared && a.hasFrozen == b.hasFrozen && a.hasTrainable == b.hasTrainable;
}

static void append(Piece &piece, const Piece &other) {
  piece.modules.insert(piece.modules.end(), other.modules.begin(), other.modules.end());
  piece.bytes += other.bytes;
}

std::vector<std::vector<size_t>> units::chooseUnitsByUse(const ModuleTree &tree,
                                                         const std::vector<bool> &ignoredModules,
                                                         const std::vector<bool> &ignoredParameters) {
  std::vector<Piece> pieces = Pieces(tree, ignoredModules, ignoredParameters).take();
  int64_t sum = 0;
  for (const Piece &piece : pieces)
    sum += piece.bytes;
  int64_t small = pieces.empty() ? 0 : sum / static_cast<int64_t>(8 * pieces.size());
  std::vector<Piece> joined;
  for (Piece &piece : pieces) {
    if (!joined.empty() && joined.back().bytes < small && mayJoin(joined.back(), piece))
      append(joined.back(), piece);
    else
      joined.push_back(std::move(piece));
  }
  std::vector<std::vector<size_t>> chosen;
  const Piece *previous = nullptr;
  for (const Piece &piece : joined) {
    if (previous && piece.bytes < small && mayJoin(*previous, piece))
      chosen.back().insert(chosen.back().end(), piece.modules.begin(), piece.modules.end());
    else
      chosen.push_back(piece.modules);
    previous = &piece;
  }
  return chosen;
}
