// Arrow keys in a picture: from a card to the nearest one in their direction.

const DIRECTIONS = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

export const isStep = (key) => key in DIRECTIONS;

// The nearest card in the direction of a key; what lies aside counts as twice as far. None at the edge.
export function beside(card, cards, key) {
  const [across, down] = DIRECTIONS[key];
  const [x, y] = middle(card);
  const far = (other) => {
    const [right, below] = middle(other).map((place, at) => place - [x, y][at]);
    const ahead = right * across + below * down;
    const aside = Math.abs(right * down + below * across);
    return ahead > 1 && aside <= 2 * ahead ? ahead + 2 * aside : Infinity;
  };
  const nearest = [...cards].filter((other) => other !== card).sort((one, other) => far(one) - far(other))[0];
  return nearest && far(nearest) < Infinity ? nearest : null;
}

function middle(card) {
  const { x, y, width, height } = card.getBBox();
  return [x + width / 2, y + height / 2];
}
