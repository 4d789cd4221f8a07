// Exact intersection of a polygon with each of many, by CGAL: the peer of figure 4a of [SPATIAL].
//
// do_intersect of Boolean set operations is regularized: it answers whether interiors meet. Rings are not closed. No
// function throws, since Python calls them as C.

#include <CGAL/Boolean_set_operations_2.h>
#include <CGAL/Exact_predicates_exact_constructions_kernel.h>

#include <CGAL/version.h>

#include <cstdint>
#include <exception>
#include <vector>

namespace {

using Kernel = CGAL::Exact_predicates_exact_constructions_kernel;
using Polygon = CGAL::Polygon_2<Kernel>;
using Polygons = std::vector<Polygon>;

Polygon polygon_of(const double* xy, std::int64_t first, std::int64_t last) {
    Polygon polygon;
    for (std::int64_t k = first; k < last; ++k) polygon.push_back({xy[2 * k], xy[2 * k + 1]});
    if (polygon.is_clockwise_oriented()) polygon.reverse_orientation();
    return polygon;
}

}  // namespace

extern "C" {

// Return polygons whose vertices are offsets[i] .. offsets[i + 1] of xy; null if that fails.
void* contrada_cgal_polygons(const double* xy, const std::int64_t* offsets, std::int64_t count) {
    try {
        auto* polygons = new Polygons();
        for (std::int64_t i = 0; i < count; ++i) polygons->push_back(polygon_of(xy, offsets[i], offsets[i + 1]));
        return polygons;
    } catch (const std::exception&) {
        return nullptr;
    }
}

// Set meets[i] to 1 if the interior of polygon i meets that of the first of `one`, else to 0; return 0, or 1 on failure.
int contrada_cgal_intersects(const void* one, const void* many, std::uint8_t* meets) {
    try {
        const Polygon& message = static_cast<const Polygons*>(one)->front();
        for (const Polygon& polygon : *static_cast<const Polygons*>(many)) *meets++ = CGAL::do_intersect(message, polygon);
        return 0;
    } catch (const std::exception&) {
        return 1;
    }
}

const char* contrada_cgal_version() { return CGAL_VERSION_STR; }

void contrada_cgal_free(void* polygons) { delete static_cast<Polygons*>(polygons); }
}
