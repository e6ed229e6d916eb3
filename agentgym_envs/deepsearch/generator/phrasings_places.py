"""Our sentences about airports, towns and regions. `phrasings` tells the format."""

AIRPORTS = """
## Airport | {name}, {nation}
say
{E} is an airport in {country}.
{E} lies in {country}, where it is one of the airports.
In {country} there is an airport called {e}.
{E} is one of the airports of {country}.
Among the airports of {country} is {e}.
An airport of {country} is {e}.
say
It serves {city}.
The place it serves is {city}.
Travelers use it for {city}.
It is the airport for {city}.
The town it belongs to is {city}.
{city} is the place that it serves.
say
Its IATA code is {iata} and its ICAO code {icao}.
It has the IATA code {iata} and the ICAO code {icao}.
IATA abbreviates it to {iata}, ICAO to {icao}.
The codes are {iata} (IATA) and {icao} (ICAO).
Tickets show the IATA code {iata}, flight plans the ICAO code {icao}.
It is known as {iata} to IATA and as {icao} to ICAO.
say
Its IATA code is {iata_only}.
It has the IATA code {iata_only}.
IATA abbreviates it to {iata_only}.
Tickets show its IATA code {iata_only}.
It is known to IATA as {iata_only}.
IATA lists it as {iata_only}.
say
The elevation is {elevation} ({elevation_m}).
It lies {elevation} ({elevation_m}) above sea level.
Its elevation above the sea is {elevation}, or {elevation_m}.
The field elevation is {elevation} ({elevation_m}).
It is found at an elevation of {elevation}, that is {elevation_m}.
Above sea level it stands at {elevation} ({elevation_m}).
say
The coordinates are {place}.
It is found at {place}.
Its position is {place}.
On the map it is at {place}.
Its latitude and longitude are {place}.
Its coordinates: {place}.
ask country | {name} country
In which country does {e} lie?
In which country is {e}?
Which country is {e} in?
What country is home to {e}?
To which country does {e} belong?
Name the country of {e}.
Landing at {e}, in which country are you?
ask city | {name} serves
Which town or city does {e} serve?
What place is served by {e}?
For which town or city is {e} the airport?
Which place do travelers reach through {e}?
Name the town or city that {e} serves.
To which town or city does {e} belong?
A flight to {e} brings you to which town or city?
ask iata | {name} IATA code
What is the IATA code of {e}?
Which three letters are the IATA code of {e}?
How does IATA abbreviate {e}?
What IATA code do tickets to {e} show?
Which IATA airport code belongs to {e}?
By which IATA code is {e} known?
On a baggage tag, which IATA code stands for {e}?
ask icao | {name} ICAO code
What is the ICAO code of {e}?
Which ICAO code does {e} have?
How does ICAO abbreviate {e}?
What ICAO code do flight plans to {e} show?
Which ICAO airport code belongs to {e}?
By which ICAO code is {e} known?
In a flight plan, which ICAO code stands for {e}?
ask elevation | {name} elevation
What is the elevation of {e} in feet?
How many feet above sea level does {e} lie?
How high above the sea is {e}, in feet?
At what elevation, in feet, does {e} lie?
In feet, what is the field elevation of {e}?
What elevation in feet is given for {e}?
A pilot who has landed at {e} is how many feet above sea level?
link country
the country where {e} lies
the country in which {e} is found
the country that {e} is in
the country that is home to {e}
the country of {e}
the country to which {e} belongs
inverse iata | IATA code {value}
the airport with the IATA code {value}
the airport that IATA abbreviates to {value}
the airport whose IATA code is {value}
the airport known to IATA as {value}
the airport that tickets show as {value}
the airport listed by IATA under {value}
inverse icao | ICAO code {value}
the airport with the ICAO code {value}
the airport that ICAO abbreviates to {value}
the airport whose ICAO code is {value}
the airport known to ICAO as {value}
the airport that flight plans show as {value}
the airport listed by ICAO under {value}
"""

TOWNS = """
## Town | {name}, {nation}
say
{E} is a town in {country}, in {region}.
{E} lies in {region}, {country}.
In {region}, {country}, lies {e}.
{E} lies in {country} and belongs to {region}.
{E} is found in {country}, within {region}.
{E} is one of the towns of {region}, {country}.
say
Its district is {district}.
The district is {district}.
On the second level it is part of {district}.
It is part of {district}.
More closely, it belongs to {district}.
Within that, it is in {district}.
say
About {population} people live there (GeoNames, 2026).
It has some {population} inhabitants (GeoNames, 2026).
GeoNames (2026) counts about {population} inhabitants.
Its population is about {population} (GeoNames, 2026).
Roughly {population} people call it home (GeoNames, 2026).
Inhabitants number about {population} (GeoNames, 2026).
say
The coordinates are {place}.
It is found at {place}.
Its position is {place}.
On the map it is at {place}.
Its latitude and longitude are {place}.
Its coordinates: {place}.
say
The nearest airport (with an IATA code) is {airport}, {airport_km} away.
{airport} is the nearest airport that has an IATA code, at {airport_km}.
Its nearest airport, of those with IATA codes, is {airport} ({airport_km}).
At {airport_km}, {airport} is the nearest airport that has an IATA code.
Of the airports with IATA codes, {airport} is the nearest, {airport_km} off.
For the nearest airport with an IATA code one travels {airport_km} to {airport}.
ask country | {name} country
In which country does {e} lie?
In which country is {e}?
Which country is {e} in?
What country is home to {e}?
To which country does {e} belong?
Name the country of {e}.
Walking through {e}, in which country are you?
ask region | {name} region
In which state, province or region does {e} lie?
Which state, province or region is {e} in?
To which first-level region of its country does {e} belong?
What state, province or region is home to {e}?
Name the state, province or region of {e}.
Of which state, province or region is {e} a part?
Walking through {e}, in which state, province or region are you?
ask airport | {name} nearest airport
Which airport with an IATA code is the nearest to {e}?
What is the nearest airport with an IATA code to {e}?
Name the airport with an IATA code that is nearest to {e}.
Which airport is the nearest to {e}, among those with an IATA code?
Of the airports with an IATA code, which lies nearest to {e}?
From {e}, which airport with an IATA code is nearest?
Which airport with an IATA code would you reach first from {e}?
link country
the country where {e} lies
the country in which {e} is found
the country that {e} is in
the country that is home to {e}
the country of {e}
the country to which {e} belongs
link region
the region where {e} lies
the region in which {e} is found
the first-level region that {e} is in
the state, province or region that is home to {e}
the state, province or region of {e}
the region to which {e} belongs
link airport
the airport nearest to {e}
the airport that lies nearest to {e}
the nearest airport to {e}
the airport with an IATA code nearest to {e}
the airport one reaches first from {e}
the airport closest to {e}

"""

REGIONS = """
## Region | {name}: Region of {nation}
say
{E} is a first-level region of {country}.
One of the first-level regions of {country} is {e}.
{country} has {e} as one of its first-level regions.
As a first-level region, {e} belongs to {country}.
Among the first-level regions of {country} is {e}.
The country of the region {e} is {country}.
say
Its kind of region is "{type}".
It has the rank "{type}".
Officially its rank is "{type}".
ISO 3166-2 calls it "{type}".
By its rank it is called "{type}".
In ISO 3166-2 its kind is "{type}".
say
The ISO 3166-2 code is {code}.
ISO 3166-2 gives it the code {code}.
It has the code {code} in ISO 3166-2.
In ISO 3166-2 it is listed as {code}.
Its code in ISO 3166-2 is {code}.
Under ISO 3166-2 it bears the code {code}.
say
Its most populous town is {largest} (GeoNames, 2026).
The most populous town in it is {largest} (GeoNames, 2026).
By GeoNames (2026), {largest} is its most populous town.
{largest} is the most populous town of the region (GeoNames, 2026).
No town in it has more people than {largest} (GeoNames, 2026).
The greatest number of people live in {largest}, of all its towns (GeoNames, 2026).
say
GeoNames lists {towns} places of more than 500 people there.
It holds {towns} places of more than 500 people, by GeoNames.
By GeoNames, {towns} of its places have more than 500 people.
The places of more than 500 people number {towns}, by GeoNames.
In GeoNames it has {towns} places of more than 500 people.
There are {towns} places of more than 500 people in it, by GeoNames.
ask country | {name} region country
In which country does the region {e} lie?
In which country is the region {e}?
Which country has {e} as one of its regions?
What country is home to the region {e}?
To which country does the region {e} belong?
Name the country of the region {e}.
Crossing the region {e}, in which country are you?
ask code | {name} region ISO 3166-2 code
What is the ISO 3166-2 code of {e}?
Which code does {e} have in ISO 3166-2?
Under which code does ISO 3166-2 list {e}?
Which ISO 3166-2 code belongs to {e}?
By which ISO 3166-2 code is {e} known?
How is {e} abbreviated in ISO 3166-2?
In data that use ISO 3166-2, which code stands for {e}?
ask largest | {name} region
By the figures of GeoNames, what is the most populous town or city of {e}?
Which town or city of {e} has the most inhabitants, by GeoNames?
Name the town or city in {e} for which GeoNames counts the most people.
Which is the largest town or city of {e} by population, according to GeoNames?
By GeoNames, where do the most people live among the towns of {e}?
In GeoNames, which town or city of {e} has the greatest population?
Ranked by the populations that GeoNames gives, which town or city comes first in {e}?
link country
the country to which the region {e} belongs
the country of the region {e}
the country that has {e} as one of its regions
the country in which the region {e} lies
the country that the region {e} is part of
the country that counts {e} among its regions
inverse code | {value} region
the region with the ISO 3166-2 code {value}
the region that ISO 3166-2 lists as {value}
the region whose ISO 3166-2 code is {value}
the region known by the code {value} in ISO 3166-2
the region abbreviated {value} in ISO 3166-2
the region for which {value} stands in ISO 3166-2
"""
